// One training step of a plan, played: the program of the plan in virtual time, on the cluster's
// own fabric, under conditions that an estimate cannot know.
//
// Ranks that must behave alike are played once (`Fold::automatic`): a rank for each stage, unless
// the conditions, the placement or the fabric make ranks unlike. Folded and unfolded give the same
// times, a picosecond an operation apart at most.
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
  StepConditions conditions;                       // none: ranks and links are alike
  const std::atomic<bool>* interrupted = nullptr;  // give up: an error that says "interrupted"
  std::function<void(double fraction)> progress;   // called now and then; may be empty
};

struct StageUse {
  Seconds busy;           // kernels of the stage's slowest rank, over the step
  double share = 0;       // of the step
  MemoryTimeline memory;  // of its first rank: buffers of the program
};

// Links of one kind, both ends named: "device to NIC".
struct LinkUtilisation {
  std::string kind;
  int links = 0;    // that carried anything
  double mean = 0;  // of the bytes that they could have carried in the step
  double most = 0;
};

struct StepSimulation {
  StepGraph step;
  Timeline timeline;
  std::string unfolded_because;  // why ranks were not folded, where they might have been
  Seconds step_time;
  Breakdown breakdown;  // of the busiest rank; its parts sum to the step
  int rank = 0;         // the busiest: in the numbering of step.graph
  std::vector<StageUse> stages;
  std::vector<LinkUtilisation> links;
  std::int64_t operations = 0;  // played: of the ranks in step.graph
};

// Requires: `plan` comes from make_plan for the same job, recompute `auto` decided. Fails, with one
// sentence, on what cannot be lowered, on conditions that name what the cluster has not, on a
// deadlock, on a rank out of reach and on a step that the clock does not hold.
Expected<StepSimulation> simulate(const PreparedJob& job, const Plan& plan,
                                  const StepOptions& options = {});

// The analytic estimate of the same plan with what the simulation found in its place: times,
// breakdown, rates, and memory by the buffers of the program.
Estimate as_estimate(const PreparedJob& job, const Plan& plan, const StepSimulation& simulation);

}  // namespace trainyard
