// Simulates one training step of a plan: plays the plan's program in virtual time on the cluster's
// own fabric, under conditions that an analytic estimate cannot express.
//
// Ranks that must behave alike are played once (`Fold::automatic`): one rank for each stage, or for
// each class of alike ranks, unless the conditions, the placement or the fabric make ranks differ.
// Folded and unfolded times agree to within one picosecond an operation.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "model/expected.h"
#include "simulator/network/network.h"
#include "simulator/reading/memory_timeline.h"
#include "simulator/step/conditions.h"
#include "simulator/step/graph.h"
#include "simulator/timeline.h"

namespace trainyard {

enum class Fold { automatic, off };

struct StepOptions {
  NetworkGrain grain = NetworkGrain::collective;
  Fold fold = Fold::automatic;
  StepConditions conditions;                       // default: all ranks and links alike
  const std::atomic<bool>* interrupted = nullptr;  // once true: fails with "interrupted"
  std::function<void(double fraction)> progress;   // of tasks done; may be empty
};

struct StageUse {
  Seconds busy;           // kernel time in the step, of the stage's slowest rank
  double share = 0;       // busy / step time
  MemoryTimeline memory;  // buffers of the program, on the stage's first rank
};

// All links of one kind that carried anything; the kind names both ends: "device to NIC".
struct LinkUtilisation {
  std::string kind;
  int links = 0;
  double mean = 0;  // bytes carried / (bandwidth · step time), mean over the links
  double most = 0;
};

struct StepSimulation {
  StepGraph step;
  Timeline timeline;
  std::string unfolded_because;  // why Fold::automatic did not fold; else empty
  Seconds step_time;
  Breakdown breakdown;  // of the rank below; the parts sum to the step time
  int rank = 0;         // the rank with most kernel time, as step.graph numbers ranks
  std::vector<StageUse> stages;
  std::vector<LinkUtilisation> links;
  std::int64_t operations = 0;  // tasks played, of all ranks in step.graph
};

// Requires: `plan` comes from make_plan for the same job, with recompute `auto` decided. Fails,
// with one sentence, where the plan cannot be lowered, the conditions name what the cluster does
// not have, the step deadlocks, a rank is out of reach, or the step exceeds the clock's range.
Expected<StepSimulation> simulate(const PreparedJob& job, const Plan& plan,
                                  const StepOptions& options = {});

// The same for a pipeline through groups of unlike nodes. Requires: the pipeline was made for the
// plan. Also fails where the conditions name ranks or links.
Expected<StepSimulation> simulate(const UnlikePipeline& pipeline, const Plan& plan,
                                  const StepOptions& options = {});

// What each stage's device holds at its peak by the program's buffers; `estimated`: the stages as
// an estimate has them.
std::vector<MemoryByKind> simulated_memory(const StepSimulation& simulation, const Stack& stack,
                                           const std::vector<StageEstimate>& estimated);

// The analytic estimate of the same plan in which times, breakdown, rates, cost and energy are
// replaced by what follows from the simulation, and memory by the peak of the program's buffers.
Estimate as_estimate(const PreparedJob& job, const Plan& plan, const StepSimulation& simulation);

}  // namespace trainyard
