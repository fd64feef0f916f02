// How long the CPU backend's collectives take among ranks that run together, by operation, size and
// number of ranks, and what arithmetic loses while one runs beside it. Times are medians of the
// slowest rank's (executor/cpu/timing.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/cpu/timing.h"
#include "executor/cpu/transport.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

struct TimedCollective {
  CollectiveSample sample;
  Timing timing;
};
struct GroupSamples {
  std::vector<TimedCollective> collectives;
  double overlap_slowdown = 0;  // share of its pace that arithmetic loses beside an all-reduce
};

// `group`: a transport among the first so many ranks, nothing on the others; all ranks call it.
// `progress` is told of what this rank has done.
struct CalibrationRanks {
  Transport& all;
  std::function<std::unique_ptr<Transport>(int ranks)> group;
  std::function<void(double fraction)> progress;
};
// Among 2, 4, … and all ranks. Collective over all ranks of `world`; all find the same.
Expected<GroupSamples> measure_collectives(const CalibrationRanks& world, Seconds budget);

}  // namespace trainyard
