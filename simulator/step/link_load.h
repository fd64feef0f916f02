// What a rank sends over the step: of all its calls that are under way, each at its mean rate from
// when the rank is ready for it to its end, but together no more than their links carry. Waiting
// for others is in that time, so a link carries more in between. Of an exchange that fused kernels
// hide in part the simulation has only what they leave: the rate is that of the whole transfer, and
// what is hidden is not in the curve.
#pragma once

#include <vector>

#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// From that time on.
struct LoadPoint {
  Picoseconds time{0};
  BytesPerSecond rate;
};

std::vector<LoadPoint> link_load(const StepGraph& step, const Timeline& timeline, int rank);

// With times of the rank's tasks as they were measured: nothing is hidden, and what the links of
// the machine carry is not known.
std::vector<LoadPoint> measured_link_load(const StepGraph& step, const Timeline& timeline,
                                          int rank);

}  // namespace trainyard
