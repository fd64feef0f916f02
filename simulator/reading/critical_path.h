// The chain of tasks that made the step as long as it is: from the last task backwards, always to
// what ended last of all that a task waited for, on its own rank, at the sender of its message or
// at the last member that came to its collective.
#pragma once

#include <string>
#include <vector>

#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

struct PathStep {
  int rank = 0;
  std::int32_t task = 0;
  Picoseconds start{0}, end{0};  // of what the task adds to the path
};

// In the order of time, without gaps, from zero to the makespan.
std::vector<PathStep> critical_path(const StepGraph& step, const Timeline& timeline);

// The path by what its tasks do, whatever the layer and the micro-batch; the longest first.
struct PathShare {
  std::string operation;
  int tasks = 0;
  Seconds time;
};
std::vector<PathShare> path_shares(const StepGraph& step, const std::vector<PathStep>& path);

// "linear (qkv projection), forward" of a task.
std::string operation_name(const StepTask& task);

}  // namespace trainyard
