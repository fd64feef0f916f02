// The rate at which a rank sends over the step: the sum over its calls under way, but no more than
// the links that they use carry. A call counts at its mean rate from when the rank is ready for it
// to its end. Waiting for other members is part of that time, so while bytes really move the rate
// is higher. A call that fused kernels hide in part is in the curve only while it is exposed, at
// the rate of the whole transfer.
#pragma once

#include <vector>

#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// The rate from `time` on, until the next point.
struct LoadPoint {
  Picoseconds time{0};
  BytesPerSecond rate;
};

std::vector<LoadPoint> link_load(const StepGraph& step, const Timeline& timeline, int rank);

// The same with measured times of the rank's tasks: calls then have no hidden part, and rates are
// not capped, because the bandwidth of the machine's links is not known.
std::vector<LoadPoint> measured_link_load(const StepGraph& step, const Timeline& timeline,
                                          int rank);

}  // namespace trainyard
