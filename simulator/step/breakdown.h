// What the step of one rank went to, read off its compute stream: kernels by kind, and what it
// waited for between them.
#pragma once

#include "model/cost/estimate.h"
#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Kernels of a rank, without waiting; those of the optimizer too.
Picoseconds busy_time(const StepGraph& step, const Timeline& timeline, int rank);

// From `start` to `end` of the timeline; the parts sum to the difference. A gap goes to the
// exchange that ended it, a message's or another stage's as far as it was under way: the rest is
// bubble.
Breakdown breakdown_of(const StepGraph& step, const Timeline& timeline, int rank, Picoseconds start,
                       Picoseconds end);

}  // namespace trainyard
