// Lower bounds of a plan's step and memory, cheap enough to prune plans before they are priced.
// Each kind of layer is priced once, and plans that differ only in stages, schedule, ZeRO stage and
// recomputation share that price (PassSums). Assumes: the passes are shared out evenly over the
// stages, no stage waits but for the first micro-batch, and data parallelism exposes nothing.
//
// Admissible for the analytic estimate: the slowest stage takes at least as long as the average
// one, and what is left out only adds. Example: where all passes of a micro-batch take 80 ms, p = 4
// and m = 16, the step takes at least 16·80/4 = 320 ms.
#pragma once

#include <optional>
#include <vector>

#include "model/cost/chunk_passes.h"
#include "model/cost/memory/memory.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "planner/bound/bound.h"
#include "planner/planner.h"

namespace trainyard {

// Sums over all layers, embedding and head, for one micro-batch on one rank of every stage.
struct PassSums {
  Seconds plain;            // all passes, nothing recomputed
  Seconds selective, full;  // what recomputation of all layers adds
  Seconds kernels;          // compute part of `plain`: with recomputation it decides the energy
  double exchanging = 0;    // largest share of a layer's passes that is the experts' all-to-all
  Bytes alive;              // least activations alive in a layer's backward pass
  Seconds least_layer;      // all passes of the fastest layer, nothing recomputed

  // All passes with this recomputation; full recomputation of only some layers counts as none.
  Seconds total(Recompute recompute) const;
};
PassSums pass_sums(const PreparedJob& job, const StageCosts& costs);

// Lower bound of the passes of one micro-batch from the layers' communication alone: hidden or not,
// a pass is never shorter than the communication beside it, nor than the host needs to launch it.
// No kernel is priced.
struct ExchangeFloor {
  Seconds plain;          // passes of all layers
  double exchanging = 0;  // largest share of a layer's passes that is the experts' all-to-all
};
// Without `experts` their all-to-all is left out: a floor for all degrees of expert parallelism.
ExchangeFloor exchange_floor(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                             bool experts);
// Lower bound of the step, plain·m/p and the stack's time once a step. `paired`: the schedule may
// run a forward pass beside a backward pass, which can hide a part of the experts' all-to-all.
Seconds step_floor(const PreparedJob& job, const Plan& plan, const ExchangeFloor& floor,
                   bool paired);

// Lower bounds of the time from the first pass of a step to the last. A stage begins when the first
// micro-batch has passed the stages before it, and these end after it. Zero without a pipeline,
// where backward passes are split, on routes other than a loop, and where layers are named.
struct SpanFloor {
  Seconds always;           // from the last stage; holds under every ZeRO stage
  Seconds without_traffic;  // from the longest span; holds under ZeRO 0 and 1, whose passes carry
                            // no traffic of parameters
};
SpanFloor span_floor(const PreparedJob& job, const PassSums& sums, const Plan& plan);

// Lower bounds of what one plan takes.
struct PlanBound {
  Seconds step;
  Seconds outside;      // part of the step before its first pass and behind its last
  Seconds busy;         // compute time in the step, averaged over all devices
  Bytes memory;         // of a device
  double fullness = 0;  // share of their memory that devices or hosts need; above 1: no room
};
// Requires: `plan` has the degrees, micro-batch, schedule, ZeRO stage and recomputation in
// question; `sums` are of its layers. `span`: a known lower bound from the first pass to the last.
PlanBound plan_bound(const PreparedJob& job, const ParameterShares& shares, const PassSums& sums,
                     const Plan& plan, Seconds span = Seconds(0));
// The same without memory and fullness, which stay 0.
PlanBound time_bound(const PreparedJob& job, const ParameterShares& shares, const PassSums& sums,
                     const Plan& plan, Seconds span = Seconds(0));
// The same bound, where the time from the first pass to the last is at least `span`.
PlanBound with_span(PlanBound bound, Seconds span);
// Lower bound of the compute time of a step, averaged over all devices: (kernels + repeated)·m/p.
// `repeated`: what one micro-batch recomputes, summed over all stages.
Seconds computing_floor(const PassSums& sums, const Plan& plan, Seconds repeated);

// Tighter bounds that know which layers each stage of a plan holds, and the schedule that runs
// them. They leave out the communication of data parallelism and the sends between stages.
// Requires: set_stages before anything else, set_passes before a bound of times.
class StageBounds {
 public:
  StageBounds(const PreparedJob& job, const StageCosts& costs) : job_(job), costs_(costs) {}

  // Sets the layers of the stages. Requires: plans passed to later calls differ from this one in
  // sharding and recomputation only.
  void set_stages(const Plan& plan);
  // Sets the passes of the stages. Requires: plans passed to later bounds of times differ from this
  // one in sharding only.
  void set_passes(const Plan& plan);
  // Lower bound from the first pass to the last, with the copies to the hosts that outlast a pass.
  Seconds pipeline(const Plan& plan);
  // The same from the passes of the slowest stage alone, without copies; costs nothing.
  Seconds busy() const { return busy_; }
  // The same from the last stage: all its passes, and one micro-batch's in the first chunks of the
  // stages before it; costs little.
  Seconds last_stage(const Plan& plan);
  // Lower bounds of the same time where each stage recomputes `repeated` layers: by the slowest
  // stage's passes without copies, and by the link to the hosts that brings activations back. The
  // first never falls with `repeated`, the second never rises. Requires: the last set_passes was of
  // a plan without recomputation.
  Seconds busy_with(const Plan& plan, int repeated) const;
  Seconds link_with(const Plan& plan, int repeated) const;
  // Time that one micro-batch recomputes, summed over all stages.
  Seconds repeated(const Plan& plan) const;
  // Whether any copy to the hosts outlasts its pass.
  bool copies_show(const Plan& plan) const;
  // What the first stage holds, and a lower bound of its passes of one micro-batch.
  const StageParameters& first_stage() const { return held_.front(); }
  const PassTimes& first_passes() const { return passes_.front(); }
  // Most memory of the first, second and last stage: one of them is mostly the fullest.
  MemoryUse memory(const Plan& plan) const;
  // Whether one of these three stages does not fit.
  bool is_too_full(const Plan& plan) const;
  // Layers of the stage that has the most.
  int most_layers() const;

 private:
  const PreparedJob& job_;
  const StageCosts& costs_;
  std::vector<StageParameters> held_;
  // [stage]: one past the last stage of its run; stages of a run have the same layers and ends.
  std::vector<std::size_t> end_of_run_;
  // Whether two stages are of one run and have the same recomputation, and so the same passes.
  bool pass_alike(const Plan& plan, std::size_t stage, std::size_t other) const;
  // One past the last of the stages, from `stage` on, that have the same passes.
  std::size_t end_of_alike(const Plan& plan, std::size_t stage) const;
  // Whether they also hold the same parameters, and so have the same copies.
  bool holds_alike(const Plan& plan, std::size_t stage, std::size_t other) const;
  MemoryUse memory_at(const Plan& plan, int stage) const;
  template <typename Visit>
  void visit_fullest(const Plan& plan, const Visit& goes_on) const;
  // 0 where micro-batches go both ways.
  static Seconds busy_of(const Plan& plan, const std::vector<PassTimes>& passes);
  void take_chunks(const Plan& plan, const std::vector<PassTimes>& passes,
                   std::vector<PassTimes>& chunks) const;
  const std::vector<PassTimes>& chunk_passes(const Plan& plan);  // of passes_
  // The closed form of the schedule; 0 where it has none.
  Seconds span_of(const Plan& plan, const std::vector<PassTimes>& passes);
  void take_copies(const Plan& plan);
  // Exposed copies of one micro-batch, all chunks: in the passes, and the part of these before the
  // first unit of a pass.
  struct ShownCopies {
    PassTimes in_passes;
    Seconds before_passes;
  };
  ShownCopies shown_copies(const Plan& plan, std::size_t stage) const;

  std::vector<UnitPasses> units_;                // of stages that differ from the one before
  std::vector<std::size_t> units_of_;            // [stage]: index into units_
  std::vector<PassTimes> passes_, with_copies_;  // [stage]
  // The same of each chunk, where stages have several; empty until asked for.
  std::vector<PassTimes> chunk_passes_, chunks_with_copies_;
  Seconds hidden_copies_;               // part of the copies while stages wait for others
  Seconds busy_;                        // all passes of the slowest stage
  std::optional<Seconds> span_, ramp_;  // results of span_of and last_stage, once asked for
};

// The objective of a plan with these bounds: a lower bound; 0 where nothing is known.
double objective_bound(const PreparedJob& job, Objective objective, const PlanBound& bound);

}  // namespace trainyard
