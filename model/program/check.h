// Whether a program can be run: every buffer is written before it is read and freed once, the
// stages meet in the same collectives in the same order, every send has its receive, and played in
// its own order it ends. Ranks of one stage run one program, so a stage is checked once and named
// by its first rank.
#pragma once

#include "model/expected.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"

namespace trainyard {

// The error is a sentence that names rank, operation and buffer; its `where` is "program".
Expected<void> check(const Program& program, const RankLayout& layout);

// The four parts, each on its own.
Expected<void> check_buffers(const Program& program, const RankLayout& layout);
Expected<void> check_collectives(const Program& program, const RankLayout& layout);
Expected<void> check_sends(const Program& program, const RankLayout& layout);
// Requires: the three above hold.
Expected<void> check_progress(const Program& program, const RankLayout& layout);

// The stages whose ranks one group joins: first, last and the step between them.
struct GroupStages {
  int first = 0, last = 0, step = 1;
};
GroupStages stages_of(Group group, int stage, int stages);

}  // namespace trainyard
