// The analytic estimate: one training step of a plan in closed form, microseconds a plan, no
// program built and nothing allocated once `out` has been used before. The step is broken into the
// exposed parts of the stage with the longest span; they sum to the step.
//
// Valid for equal nodes; contention beyond shared NICs and leaves is the simulator's business.
#pragma once

#include <string_view>
#include <vector>

#include "model/cost/breakdown.h"
#include "model/cost/kernel_times.h"
#include "model/cost/memory/memory.h"
#include "model/cost/messages/known_collectives.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/slack.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

struct StageEstimate {
  StageMemory memory;
  PassTimes passes;   // of one micro-batch, sends and exposed communication included
  Breakdown exposed;  // the same by part, forward and backward together
  Flops repeated;     // by recomputation, of a sequence and all ranks of the stage
};

struct Estimate {
  Seconds step_time;
  Seconds step_time_low, step_time_high;  // 10–90 %
  Breakdown breakdown;
  std::vector<StageEstimate> stages;
  std::vector<StageParameters> held;    // per stage: layers and parameters of a rank
  std::vector<PassTimes> passes;        // per stage, as the schedule's span takes them
  std::vector<PassTimes> chunk_passes;  // the same of its chunks, where it has several
  std::vector<StageLosses> losses;      // per stage of a loop, once a step
  int slowest_stage = 0;
  int fullest_stage = 0;

  double tokens_per_second = 0;
  FlopsPerSecond model_flops_per_device;
  double mfu = 0;       // of the peak of the recipe's layer GEMMs
  double mfu_bf16 = 0;  // of the bf16 (fp16 where there is none) peak
  double hfu = 0;
  bool feasible = false;  // the fullest stage fits the device, and what is on the hosts fits them
  Bytes peak_allocated, peak_reserved, peak_memory;  // of the fullest stage, on the device
  Bytes peak_memory_low, peak_memory_high;           // 10–90 %
  Bytes host_memory;    // of a node all of whose ranks are of the stage that has most there
  double fullness = 0;  // by the last two; at most 1: `feasible`
  std::optional<Dollars> cost_per_step;   // unknown without a price
  std::optional<Joules> energy_per_step;  // unknown without a power
};

// Requires: `plan` comes from make_plan for the same job.
void estimate(const PreparedJob& job, const Plan& plan, Estimate& out);
Estimate estimate(const PreparedJob& job, const Plan& plan);

// The peaks of the fullest stage, and whether it fits, by what `out` has of each stage.
void fill_peaks(const Job& job, Estimate& out);

// Kernels of a device over the step, on the average of all stages: what its power follows.
// Requires: `estimate` is of the same plan.
Seconds computing_time(const Plan& plan, const Estimate& estimate);

// The same for many plans of one job, which share the kernel times of layers that they cut alike
// and the collectives of groups that lie alike.
// Safe from several threads, each with its own `out`.
class Estimator {
 public:
  // `job` outlives the estimator.
  explicit Estimator(const PreparedJob& job) : job_(job), kernels_(job) {}
  void estimate(const Plan& plan, Estimate& out) const;
  // If no stage ever waited for another: a lower bound that spares the playing of schedules without
  // a closed form. Its memory is exact.
  void estimate_bound(const Plan& plan, Estimate& out) const;
  // As `plan_links`, for this to price; this outlives them.
  PlanLinks links(const Plan& plan) const;
  // Of a plan of these links (`stage_costs` of model/cost/layer_cost.h).
  StageCosts stage_costs(const Plan& plan, const PlanLinks& links) const;

 private:
  const PreparedJob& job_;
  KernelTimeTable kernels_;
  KnownCollectives collectives_;
};

// How much longer kernels take on the slowest of the plan's ranks than on a rank of mean speed.
double slowest_rank_factor(const Stack& stack, const Plan& plan);
// What that adds to a step of these parts: kernels, and the bubble that they pace, take so much
// longer; exposed communication does not.
Seconds lost_to_slowest_rank(const Stack& stack, const Plan& plan, const Breakdown& parts);

// `plan` with recompute `auto` replaced by the least recomputation that fits the memory (none,
// selective, full on n layers, full); a plan that never fits gets full.
Plan resolve_recompute(const PreparedJob& job, Plan plan);

}  // namespace trainyard
