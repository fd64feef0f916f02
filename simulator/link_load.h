// What the messages of a rank carry over the step: of all its calls that are under way, each at its
// mean rate from when the rank is ready for it to its end. Waiting for others is in that time, so
// a link carries more in between.
#pragma once

#include <vector>

#include "simulator/step_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// From that time on.
struct LoadPoint {
  Picoseconds time{0};
  BytesPerSecond rate;
};

std::vector<LoadPoint> link_load(const StepGraph& step, const Timeline& timeline, int rank);

}  // namespace trainyard
