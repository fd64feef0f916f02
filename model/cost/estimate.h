// The analytic estimate: one training step of a plan in closed form. It takes microseconds a plan,
// builds no program, and allocates nothing once `out` has been used before. The step is broken into
// the exposed parts of the stage with the longest span; they sum to the step.
//
// Each stage's passes are priced from its layers (layer_cost.h), the schedule's span is taken of
// them (handbook §8), and what happens once a step is added (fill of the pipeline, ends of the
// data-parallel traffic, optimizer). Valid for equal nodes, or stages on equal nodes each;
// contention beyond shared NICs and leaves is the simulator's business.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/cost/breakdown.h"
#include "model/cost/kernel_times.h"
#include "model/cost/memory/memory.h"
#include "model/cost/messages/known_collectives.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/slack.h"
#include "model/cost/stage_price.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

struct Estimate {
  Seconds step_time;
  Seconds step_time_low, step_time_high;  // 10–90 %
  Breakdown breakdown;
  std::vector<StageEstimate> stages;
  std::vector<StageParameters> held;    // per stage: layers and parameters of a rank
  std::vector<PassTimes> passes;        // per stage, as the schedule's span takes them
  std::vector<PassTimes> chunk_passes;  // … per chunk, where stages hold several; else empty
  std::vector<StageLosses> losses;      // per stage (Slack); empty where it takes nothing off
  int slowest_stage = 0;                // has the longest passes
  int fullest_stage = 0;                // has the highest peak of device memory

  double tokens_per_second = 0;
  FlopsPerSecond model_flops_per_device;
  double mfu = 0;       // of the peak of the recipe's layer GEMMs; attention counted in full
  double mfu_bf16 = 0;  // of the bf16 (fp16 where there is none) peak
  double hfu = 0;
  bool feasible = false;  // the fullest stage fits the device, and what is on the hosts fits them
  Bytes peak_allocated, peak_reserved, peak_memory;  // of the fullest stage, on the device
  Bytes peak_memory_low, peak_memory_high;           // 10–90 %
  Bytes host_memory;    // of a node whose ranks are all of the stage that keeps most on hosts
  double fullness = 0;  // used share of device or host memory, the larger; ≤ 1: `feasible`
  std::optional<Dollars> cost_per_step;   // unknown without a price
  std::optional<Joules> energy_per_step;  // unknown without a power
};

// Requires: `plan` comes from make_plan for the same job.
void estimate(const PreparedJob& job, const Plan& plan, Estimate& out);
Estimate estimate(const PreparedJob& job, const Plan& plan);

// Sets the memory fields of `out`, from `fullest_stage` to `fullness`, from `out.stages`.
void fill_peaks(const Job& job, Estimate& out);

// Time of a step in which a device runs kernels, the mean over all stages: its power depends on it.
// Requires: `estimate` is of the same plan.
Seconds computing_time(const Plan& plan, const Estimate& estimate);

// MFU with attention counted causal, as some publish it: only the keys that a token may see. `mfu`
// counts all keys, the convention of Megatron and PaLM (handbook §3).
double causal_mfu(const PreparedJob& job, const Estimate& estimate);

// Estimates for many plans of one job. It keeps kernel times for plans that cut layers alike, and
// times of collectives for groups that lie alike on the cluster.
// Safe from several threads, each with its own `out`.
class Estimator {
 public:
  // `job` outlives the estimator.
  explicit Estimator(const PreparedJob& job) : job_(job), kernels_(job) {}
  void estimate(const Plan& plan, Estimate& out) const;
  // The step as if no stage ever waited for another (no bubble): a lower bound, and fast, for no
  // pass list is played where a schedule has no closed form. Memory is that of estimate().
  void estimate_bound(const Plan& plan, Estimate& out) const;
  // A pipeline whose stages run on unlike nodes: the job of each estimator has the cluster of its
  // own stages. It leaves out what follows for a whole cluster (rates, peaks of memory, cost and
  // energy), and sends between stages of two jobs.
  struct StagesOn {
    const Estimator* estimator;
    int stages;
    PlanLinks links;      // of these stages, and `ends` of the pipeline
    PipelineSends sends;  // from one of them to the next
  };
  static void estimate_pipeline(std::span<const StagesOn> on, const Plan& plan, Estimate& out);
  // As plan_links(), with the collectives kept here. This outlives them.
  PlanLinks links(const Plan& plan) const;
  // As stage_costs() of model/cost/layer_cost.h, with the kernel times kept here.
  StageCosts stage_costs(const Plan& plan, const PlanLinks& links) const;

 private:
  const PreparedJob& job_;
  KernelTimeTable kernels_;
  KnownCollectives collectives_;
};

// `plan` with recompute `auto` replaced by the least recomputation that fits the memory (none,
// selective, full on n layers, full); a plan that never fits gets full.
Plan resolve_recompute(const PreparedJob& job, Plan plan);

}  // namespace trainyard
