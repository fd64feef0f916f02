// Lower bounds of a plan that cost one look at a layer: what the passes of one micro-batch take in
// all, shared by every plan that differs in stages, schedule, ZeRO and recomputation only, and from
// it a step in which no stage waits but for the first micro-batch, and nothing of data parallelism
// shows.
//
// Admissible for the analytic estimate: the slowest stage takes at least the average one.
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

// All layers, embedding and head, for one micro-batch on one rank of every stage.
struct PassSums {
  Seconds plain;            // all passes, nothing repeated
  Seconds selective, full;  // what recomputation adds
  Seconds kernels;        // of `plain`, what kernels take: power follows them and what is repeated
  double exchanging = 0;  // the largest share of it that is experts' exchange, of any layer
  Bytes alive;            // the least that a layer's backward pass has alive
  Seconds least_layer;    // all passes of the layer that takes the least, nothing repeated

  Seconds total(Recompute recompute) const;
};
PassSums pass_sums(const PreparedJob& job, const StageCosts& costs);

// What the layers' communication of one micro-batch makes of its passes at least, whatever their
// kernels take: hidden or not, a pass is never shorter than the exchange that runs beside it, nor
// than the host needs to launch it. Costs no look at a kernel.
struct ExchangeFloor {
  Seconds plain;          // of all layers
  double exchanging = 0;  // the largest share of it that is experts' exchange, of any layer
};
// Without `experts` it is the floor of every sharding of the experts.
ExchangeFloor exchange_floor(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                             bool experts);
// A step with these passes; `paired`: a schedule of the plan may run a forward pass beside a
// backward pass.
Seconds step_floor(const PreparedJob& job, const Plan& plan, const ExchangeFloor& floor,
                   bool paired);

// From the first pass of a step to the last, at least: a stage begins when the first micro-batch
// has passed those before it, and they end after it. Zero where a backward pass is split or goes
// another way, and where layers are named.
struct SpanFloor {
  Seconds always;           // of the last stage alone
  Seconds without_traffic;  // of the longest, where passes hold no traffic of parameters
};
SpanFloor span_floor(const PreparedJob& job, const PassSums& sums, const Plan& plan);

// What a plan takes at least. Requires: `plan` has the degrees, micro-batch, schedule, ZeRO stage
// and recomputation in question; the layers of `sums` are its own. `span`: what is known of it from
// the first pass to the last.
struct PlanBound {
  Seconds step;
  Seconds outside;      // of the step, before its first pass and behind its last
  Seconds busy;         // of the step, computing; on the average of all devices
  Bytes memory;         // of a device
  double fullness = 0;  // of devices and hosts
};
PlanBound plan_bound(const PreparedJob& job, const ParameterShares& shares, const PassSums& sums,
                     const Plan& plan, Seconds span = Seconds(0));
// The same of its times alone.
PlanBound time_bound(const PreparedJob& job, const ParameterShares& shares, const PassSums& sums,
                     const Plan& plan, Seconds span = Seconds(0));
// The same where from the first pass to the last it takes `span` or longer.
PlanBound with_span(PlanBound bound, Seconds span);
// What a device computes in the step at least, on the average of all, where a micro-batch repeats
// so much of it on all stages together.
Seconds computing_floor(const PassSums& sums, const Plan& plan, Seconds repeated);

// Bounds that know the stages of a plan: which layers each holds, and the schedule that runs them.
// Of data parallelism and sends they know nothing. Those of times need set_passes first.
class StageBounds {
 public:
  StageBounds(const PreparedJob& job, const StageCosts& costs) : job_(job), costs_(costs) {}

  // Takes the stages of this plan. What follows is asked of plans that differ from it in sharding
  // and recomputation only.
  void set_stages(const Plan& plan);
  // Takes its passes. The others are asked of plans that differ from it in sharding only.
  void set_passes(const Plan& plan);
  // From the first pass to the last, at least; with the copies to the hosts that outlast a pass.
  Seconds pipeline(const Plan& plan);
  // The same of the slowest stage alone, without copies; costs nothing.
  Seconds busy() const { return busy_; }
  // The same of the last stage and what stands before and behind it; costs little.
  Seconds last_stage(const Plan& plan);
  // The slowest stage alone where so many layers of each are repeated: without copies, and on the
  // link to the hosts with activations on their way back. The first never falls with their number,
  // the second never rises. Requires: the passes that were taken last repeat nothing.
  Seconds busy_with(const Plan& plan, int repeated) const;
  Seconds link_with(const Plan& plan, int repeated) const;
  // What a micro-batch repeats on all stages together.
  Seconds repeated(const Plan& plan) const;
  // Whether any copy to the hosts outlasts its pass; of the passes that were taken last.
  bool copies_show(const Plan& plan) const;
  // Of the first stage: what it holds, and its passes of one micro-batch, at least.
  const StageParameters& first_stage() const { return held_.front(); }
  const PassTimes& first_passes() const { return passes_.front(); }
  // Memory of the stages that are mostly the fullest.
  MemoryUse memory(const Plan& plan) const;
  // Whether one of these has no room for it.
  bool is_too_full(const Plan& plan) const;
  // Of any stage.
  int most_layers() const;

 private:
  const PreparedJob& job_;
  const StageCosts& costs_;
  std::vector<StageParameters> held_;
  // By stage: behind those from it on that have the same layers and ends, a run.
  std::vector<std::size_t> end_of_run_;
  // Whether two stages are of one run and have the same recomputation.
  bool pass_alike(const Plan& plan, std::size_t stage, std::size_t other) const;
  // Behind the stages from this one on that do.
  std::size_t end_of_alike(const Plan& plan, std::size_t stage) const;
  // And the same copies: a stage of the same layers holds as much of an embedding or a head.
  bool holds_alike(const Plan& plan, std::size_t stage, std::size_t other) const;
  MemoryUse memory_at(const Plan& plan, int stage) const;
  template <typename Visit>
  void visit_fullest(const Plan& plan, const Visit& goes_on) const;
  // Nothing where a stage works both ways.
  static Seconds busy_of(const Plan& plan, const std::vector<PassTimes>& passes);
  void take_chunks(const Plan& plan, const std::vector<PassTimes>& passes,
                   std::vector<PassTimes>& chunks) const;
  const std::vector<PassTimes>& chunk_passes(const Plan& plan);  // of the passes taken last
  // The schedule's, where it has a closed form.
  Seconds span_of(const Plan& plan, const std::vector<PassTimes>& passes);
  void take_copies(const Plan& plan);
  // Of one micro-batch, all chunks: in the passes, and of that before the first unit of each.
  struct ShownCopies {
    PassTimes in_passes;
    Seconds before_passes;
  };
  ShownCopies shown_copies(const Plan& plan, std::size_t stage) const;

  std::vector<UnitPasses> units_;                // of stages that differ from the one before
  std::vector<std::size_t> units_of_;            // by stage: which of these are its own
  std::vector<PassTimes> passes_, with_copies_;  // of the stages
  // Of their chunks, where they have several and once they were asked for.
  std::vector<PassTimes> chunk_passes_, chunks_with_copies_;
  Seconds hidden_copies_;               // of these, while stages wait for others
  Seconds busy_;                        // the slowest stage's passes
  std::optional<Seconds> span_, ramp_;  // once they were asked for
};

// The objective of a plan that is this good; 0 where nothing is known.
double objective_bound(const PreparedJob& job, Objective objective, const PlanBound& bound);

}  // namespace trainyard
