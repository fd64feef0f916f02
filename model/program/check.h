// Checks that a program can be run: every buffer is written before it is read and is freed once,
// all stages of a group call the same collectives in the same order, every send has its receive,
// and the program ends when it is played in its own order. All ranks of a stage run the same
// program, so a stage is checked once, and errors name its first rank.
#pragma once

#include "model/expected.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"

namespace trainyard {

// The error is a sentence that names rank, operation and buffer; its `where` is "program".
Expected<void> check(const Program& program, const RankLayout& layout);

// The four parts of check().
Expected<void> check_buffers(const Program& program, const RankLayout& layout);
Expected<void> check_collectives(const Program& program, const RankLayout& layout);
Expected<void> check_sends(const Program& program, const RankLayout& layout);
// Requires: the three above hold.
Expected<void> check_progress(const Program& program, const RankLayout& layout);

// The stages whose ranks one group joins, when a rank of `stage` is a member: first, last and the
// step between them.
struct GroupStages {
  int first = 0, last = 0, step = 1;
};
GroupStages stages_of(Group group, int stage, int stages);

}  // namespace trainyard
