// Whom a rank waits for: the program says with whom it meets in an operation, the boards who has
// come there. Stages have lists of their own, so what two ranks meet in has a number in each, and
// numbers of different stages are never compared.
#pragma once

#include <vector>

#include "executor/supervision/board.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"

namespace trainyard {

// What a rank in a call, or a device in a communication, lacks. A collective ends when all have
// come to it, a message when it was sent.
struct Waits {
  std::vector<int> for_ranks;  // that have not come; none: all have
  std::vector<int> with;       // that are in the same call still, the rank itself too
  std::vector<int> passed;     // that sent its message and are elsewhere: it leaves while they run
};

// Of ranks without a program: whoever is in no call keeps all that are in one waiting.
Waits waits_without_program(const Boards& boards, int rank);

// Requires: the board of `rank` is there, and the layout and the program are those of the boards.
Waits waits_in(const Program& program, const RankLayout& layout, const Boards& boards, int rank);

}  // namespace trainyard
