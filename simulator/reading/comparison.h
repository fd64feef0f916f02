// Two steps, simulated or measured, operation by operation: what takes longer in the second one,
// and on which stage.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/step.h"

namespace trainyard {

// All tasks of one stage's slowest rank that do the same, whatever the layer and the micro-batch.
// A receive or a collective takes from when its rank is ready for it: waiting for others shows.
struct OperationTime {
  int stage = 0;
  std::string operation;
  int tasks = 0;
  Seconds time;
};

// As the program names its operations, or by what can be told from the names of kernels ("gemm",
// "attention backward"; scenarios/interchange/kineto.h).
enum class OperationNames { program, kernels };
// The latter name of one task.
std::string_view kernel_class(const StepTask& task);
std::vector<OperationTime> operation_times(const StepSimulation& simulation, OperationNames names);

struct OperationDifference {
  int stage = 0;
  std::string operation;
  int tasks_before = 0, tasks_after = 0;
  Seconds before, after;
  Seconds longer() const { return after - before; }
};

// The largest differences first; stages that only one of the two has are compared with nothing.
std::vector<OperationDifference> compare(const std::vector<OperationTime>& before,
                                         const std::vector<OperationTime>& after);
std::vector<OperationDifference> compare(const StepSimulation& before, const StepSimulation& after);

}  // namespace trainyard
