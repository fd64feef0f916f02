// Which ranks a rank waits for. The program says whom it meets in an operation; the boards say who
// has come there. Each stage has its own list of operations, so one meeting has a number in each
// list, and numbers of different stages are never compared.
#pragma once

#include <vector>

#include "executor/supervision/board.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"

namespace trainyard {

// What a rank in a call, or a device in a communication, waits for. A collective ends when all
// members have come to it, a receive when the message was sent.
struct Waits {
  std::vector<int> for_ranks;  // ranks that have not come yet; empty: all have
  std::vector<int> with;       // ranks that are still in the same call, this one included
  // Ranks that sent the message that this rank receives and went on; a message may leave only while
  // its sender runs.
  std::vector<int> passed;
};

// For ranks without a program: every rank in no call keeps all that are in one waiting.
Waits waits_without_program(const Boards& boards, int rank);

// Requires: the board of `rank` is there, and the layout and the program are those of the boards.
Waits waits_in(const Program& program, const RankLayout& layout, const Boards& boards, int rank);

}  // namespace trainyard
