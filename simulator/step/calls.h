// The calls of a program: for every operation of a block that communicates, the algorithm that
// carries it and what it takes beyond that algorithm's closed form. Where the stack overlaps the
// exchanges of tensor parallelism or of experts, the calibrated share that its fused kernels hide
// is taken off the call, and the rest stands among the kernels. So it is with experts' exchanges in
// a pair of passes that a schedule runs side by side. Internal to the way from a program to a task
// graph.
#pragma once

#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/program/program.h"
#include "model/program/rank_layout.h"
#include "simulator/step/graph.h"

namespace trainyard {

struct StepCalls {
  std::vector<Call> calls;
  std::vector<Seconds> alone;  // time without other traffic
  std::vector<CallLoad> loads;
  std::vector<std::vector<int>> of;  // [block][operation]; −1: it does not communicate
  // The same in a pass that runs beside another one.
  std::vector<std::vector<int>> of_pairs;
};

// By block: whether layers call it.
std::vector<bool> called_by_layers(const Program& program);

StepCalls step_calls(const PreparedJob& job, const Plan& plan, const Program& program,
                     const RankLayout& layout);

}  // namespace trainyard
