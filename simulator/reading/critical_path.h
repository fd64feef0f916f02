// The critical path: the chain of tasks that made the step as long as it is. It is followed
// backwards from the task that ends last, each time to whichever task ended last of those it waited
// for: on its own rank, at the sender of its message, or at the last member to reach its
// collective.
#pragma once

#include <string>
#include <vector>

#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

struct PathStep {
  int rank = 0;
  std::int32_t task = 0;
  Picoseconds start{0}, end{0};  // the part of the path that the task adds
};

// The path in the order of time, without gaps, from zero to the makespan.
std::vector<PathStep> critical_path(const StepGraph& step, const Timeline& timeline);

// The time of the path by operation, whatever the layer and the micro-batch; the longest first.
struct PathShare {
  std::string operation;
  int tasks = 0;
  Seconds time;
};
std::vector<PathShare> path_shares(const StepGraph& step, const std::vector<PathStep>& path);

// A task's operation without layer and micro-batch: "linear (qkv projection), forward".
std::string operation_name(const StepTask& task);

}  // namespace trainyard
