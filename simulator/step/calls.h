// The calls of a program: for every operation of a block that communicates, the algorithm that
// carries it, and its calibrated time over that algorithm's closed form (Call::stretch). Where the
// stack overlaps the exchanges of tensor or expert parallelism with compute, the calibrated share
// that is hidden is taken off the call, and the exposed rest is played on the compute stream. The
// same is done for experts' exchanges in two passes that a schedule runs side by side. Internal to
// the lowering of a program to a task graph.
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
  std::vector<Seconds> alone;  // of each call: exposed time without other traffic
  std::vector<CallLoad> loads;
  std::vector<std::vector<int>> of;  // [block][operation] → call; −1: it does not communicate
  // The same for passes that run side by side with another one.
  std::vector<std::vector<int>> of_pairs;
};

// For each block, whether a layer of the network calls it.
std::vector<bool> called_by_layers(const Program& program);

StepCalls step_calls(const PreparedJob& job, const Plan& plan, const Program& program,
                     const RankLayout& layout);

}  // namespace trainyard
