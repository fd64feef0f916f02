// Compares two steps, simulated or measured, operation by operation: what takes longer in the
// second one, and on which stage.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/step.h"

namespace trainyard {

// All tasks of the same operation on a stage's slowest rank, whatever their layer and micro-batch.
// A receive or a collective counts from when its rank is ready for it, so it includes waiting.
struct OperationTime {
  int stage = 0;
  std::string operation;
  int tasks = 0;
  Seconds time;
};

// How operations are named: as in the program, or by the class that kernel names reveal ("gemm",
// "attention backward"; scenarios/interchange/kineto.h).
enum class OperationNames { program, kernels };
// The class of a task's kernel, for OperationNames::kernels.
std::string_view kernel_class(const StepTask& task);
std::vector<OperationTime> operation_times(const StepSimulation& simulation, OperationNames names);

struct OperationDifference {
  int stage = 0;
  std::string operation;
  int tasks_before = 0, tasks_after = 0;
  Seconds before, after;
  Seconds longer() const { return after - before; }
};

// The largest differences first. A stage or operation that only one step has is compared with zero.
std::vector<OperationDifference> compare(const std::vector<OperationTime>& before,
                                         const std::vector<OperationTime>& after);
std::vector<OperationDifference> compare(const StepSimulation& before, const StepSimulation& after);

}  // namespace trainyard
