// What the step time of one rank went to, read off its compute stream: kernels by kind, and what
// the rank waited for between them.
#pragma once

#include "model/cost/estimate.h"
#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// The summed time of a rank's kernels, the optimizer's included, without waiting.
Picoseconds busy_time(const StepGraph& step, const Timeline& timeline, int rank);

// The breakdown of the time from `start` to `end`; the parts sum to it. A gap of the compute stream
// is booked to the exchange that ended it; for a message, or an exchange with other stages, only as
// much of the gap as the exchange takes on its own. The rest of the gap is bubble.
Breakdown breakdown_of(const StepGraph& step, const Timeline& timeline, int rank, Picoseconds start,
                       Picoseconds end);

}  // namespace trainyard
