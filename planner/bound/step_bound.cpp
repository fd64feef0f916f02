#include "planner/bound/step_bound.h"

#include <algorithm>
#include <cmath>

#include "model/cost/chunk_passes.h"
#include "model/cost/exposure.h"
#include "model/cost/layer_cost.h"
#include "model/cost/memory/offload.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/cost/money.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

constexpr double kRounding = 1 - 1e-9;

Seconds compute_of(const LayerCost& cost) {
  return cost.forward.compute + cost.input_gradient.compute + cost.weight_gradient.compute;
}

void add(const LayerCost& cost, int times, PassSums& sums) {
  const Seconds all = cost.passes().total();
  sums.plain += times * all;
  sums.selective += times * cost.selective_recompute.total();
  sums.full += times * cost.full_recompute.total();
  sums.kernels += times * compute_of(cost);
  if (all <= Seconds(0)) return;
  const Seconds exchange = cost.forward.expert_parallel + cost.input_gradient.expert_parallel;
  sums.exchanging = std::max(sums.exchanging, exchange / all);
}

// What repeating every second layer of each stage adds: of an odd number the more, and of layers
// that differ perhaps the smallest.
Seconds least_of_every_second(const StageCosts& costs, const LayerCounts& layers) {
  Seconds least(1e30);
  int all = 0;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    if (layers[kind] == 0) continue;
    all += layers[kind];
    least = std::min(least, costs.layers[kind].full_recompute.total());
  }
  return 0.5 * all * least;
}

// The largest share of a stage's time that running a forward pass beside a backward pass can hide.
double hidden_share(const PreparedJob& job, double exchanging) {
  const double gained = std::max(0.0, 1 - job.job.training.stack.overlap_slowdown);
  return std::min(exchanging, 0.5) * gained;
}

Seconds both(PassTraffic traffic) { return traffic.forward + traffic.backward; }

// Exposed communication of a layer's attention and MLP blocks. Ring attention counts whole although
// it hides behind the attention core: the core is part of the pass, which is never shorter than the
// ring.
Seconds shown_exchange(const Stack& stack, const Plan& plan, const LayerTraffic& traffic) {
  return both(traffic.tensor_parallel) * shown_of_tensor_parallel(stack, plan) +
         both(traffic.context_parallel);
}

PassTimes passes_of(const Plan& plan, const LayerCost& cost, double full, double selective) {
  PassCost input_gradient = cost.input_gradient;
  PassCost weight_gradient = cost.weight_gradient;
  add_second_gather(plan, cost.second_gather, input_gradient, weight_gradient);
  return {cost.forward.total(),
          input_gradient.total() + cost.full_recompute.total() * full +
              cost.selective_recompute.total() * selective,
          weight_gradient.total()};
}

// Sets the passes of the stage's layers, embedding and head for one micro-batch; those that the
// stage does not have stay 0.
void set_unit_passes(const StageCosts& costs, const Plan& plan, const StageParameters& held,
                     const RepeatedOnStage& repeated, UnitPasses& units) {
  for (std::size_t kind = 0; kind < held.kinds.size(); ++kind) {
    if (held.kinds[kind] == 0) continue;
    units.layers[kind] =
        passes_of(plan, costs.layers[kind], repeated.full[kind], repeated.selective);
    units.full_recompute[kind] = costs.layers[kind].full_recompute.total();
  }
  if (held.embedding) units.embedding = passes_of(plan, costs.embedding, 0, 0);
  if (held.head) units.head = passes_of(plan, costs.head, 0, 0);
}

// F, B and W of one micro-batch on a stage.
PassTimes stage_passes(const UnitPasses& units, const StageParameters& held) {
  PassTimes passes;
  for (std::size_t kind = 0; kind < held.kinds.size(); ++kind) {
    if (held.kinds[kind] > 0) passes.add(units.layers[kind], held.kinds[kind]);
  }
  return passes.add(units.embedding).add(units.head);
}

// Whether both stages have the same layers, embedding and head.
bool held_alike(const StageParameters& a, const StageParameters& b) {
  return a.kinds == b.kinds && a.embedding == b.embedding && a.head == b.head;
}

// The parameters on a rank of the average stage.
StageParameters average_stage(const ParameterShares& shares, const Plan& plan) {
  StageParameters stage;
  stage.dense = shares.dense / (plan.tensor_parallel * plan.pipeline_parallel);
  stage.experts = shares.experts /
                  (plan.expert_parallel * plan.expert_tensor_parallel * plan.pipeline_parallel);
  return stage;
}

// A lower bound of the share of stages that have a layer: only the two end stages may have none.
double share_with_layers(const Plan& plan) {
  const double stages = plan.pipeline_parallel;
  return stages > 2 ? (stages - 2) / stages : 0;
}

Bytes memory_of(const PreparedJob& job, const PassSums& sums, const Plan& plan,
                const StageParameters& average) {
  const Stack& stack = job.job.training.stack;
  const MemoryByKind states = state_memory(job.job.training, plan, average);
  const Bytes held = states.parameters + states.gradients + states.optimizer;
  const double with_layers = plan.pipeline_parallel == 1 ? 1 : share_with_layers(plan);
  return (held + sums.alive * with_layers) * (1 + stack.fragmentation) + stack.runtime_memory;
}

}  // namespace

Seconds PassSums::total(Recompute recompute) const {
  switch (recompute.mode) {
    case RecomputeMode::selective:
      return plain + selective;
    case RecomputeMode::full:
      return recompute.full_layers == 0 ? plain + full : plain;
    case RecomputeMode::none:
    case RecomputeMode::automatic:
      break;
  }
  return plain;
}

PassSums pass_sums(const PreparedJob& job, const StageCosts& costs) {
  PassSums sums;
  sums.alive = Bytes(1e30);
  sums.least_layer = Seconds(1e30);
  const LayerCounts layers = job.all_layers();
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    if (layers[kind] == 0) continue;
    const LayerCost& cost = costs.layers[kind];
    add(cost, layers[kind], sums);
    sums.least_layer = std::min(sums.least_layer, cost.passes().total());
    const Bytes kept = std::min(cost.saved.everything, cost.saved.selective);
    sums.alive = std::min(sums.alive, kept + cost.gradients);
  }
  add(costs.embedding, 1, sums);
  add(costs.head, 1, sums);
  if (job.job.training.stack.selective == SelectiveRecompute::half_of_layers) {
    sums.selective = least_of_every_second(costs, layers);
  }
  return sums;
}

ExchangeFloor exchange_floor(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                             bool experts) {
  const Stack& stack = job.job.training.stack;
  const LayerCounts layers = job.all_layers();
  const TensorTraffic tensor = tensor_traffic(job, plan, links);
  ExchangeFloor floor;
  for (std::size_t index = 0; index < layers.size(); ++index) {
    if (layers[index] == 0) continue;
    const LayerKind kind = layer_kind_at(job.job.model, static_cast<int>(index));
    const LayerTraffic traffic = layer_traffic(job, plan, links, tensor, kind);
    const bool known = experts && kind.moe && !plan.overlap.expert_parallel;
    const Seconds exchange = known ? both(traffic.expert_parallel) : Seconds(0);
    const Seconds host = kind.moe ? stack.host_moe_layer_forward : stack.host_layer_forward;
    const Seconds layer =
        std::max(shown_exchange(stack, plan, traffic) + exchange, host * (1 + stack.host_backward));
    floor.plain += layers[index] * layer;
    if (!kind.moe) continue;
    const double share = known && layer > Seconds(0) ? exchange / layer : 1;
    floor.exchanging = std::max(floor.exchanging, share);
  }
  return floor;
}

Seconds step_floor(const PreparedJob& job, const Plan& plan, const ExchangeFloor& floor,
                   bool paired) {
  const double hidden = paired ? hidden_share(job, floor.exchanging) : 0;
  const Seconds passes = floor.plain * plan.microbatches / plan.pipeline_parallel;
  return (passes * (1 - hidden) + job.job.training.stack.step_overhead) * kRounding;
}

// The span of a stage is at least that of handbook §8's closed forms: its m micro-batches, and one
// micro-batch in the first chunks of the stages before it. `always` is that of the last stage,
// which has all others before it. `without_traffic` is the least that the longest span can be, over
// all ways to share the passes out: all spans are then equal, so that each stage takes 1 − 1/m of
// the one before. With several chunks the span of the average stage stands for it.
SpanFloor span_floor(const PreparedJob& job, const PassSums& sums, const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  const int stages = plan.pipeline_parallel;
  if (stages == 1 || schedule.route != Route::loop || schedule.splits_backward ||
      !plan.layers_per_stage.empty()) {
    return {};
  }
  const double m = plan.microbatches;
  const LayersOfChunks layers(plan, job.job.model.layers);
  int of_last = 0;
  for (int chunk = 0; chunk < plan.virtual_stages; ++chunk) {
    of_last += layers[chunk * stages + stages - 1];
  }
  const Seconds last = of_last * sums.least_layer;
  if (plan.virtual_stages == 1) {
    return {sums.plain + (m - 1) * last, sums.plain / (1 - std::pow(1 - 1 / m, stages))};
  }
  int before = 0;  // layers of the first chunks before a stage, all stages together
  for (int stage = 1; stage < stages; ++stage) before += layers.before(stage);
  return {layers.before(stages - 1) * sums.least_layer + m * last,
          (m * sums.plain + before * sums.least_layer) / stages};
}

PlanBound with_span(PlanBound bound, Seconds span) {
  bound.step = std::max(bound.step, (span + bound.outside) * kRounding);
  return bound;
}

PlanBound time_bound(const PreparedJob& job, const ParameterShares& shares, const PassSums& sums,
                     const Plan& plan, Seconds span) {
  const Seconds passes = sums.total(plan.recompute) * plan.microbatches / plan.pipeline_parallel;
  PlanBound bound;
  bound.busy = computing_floor(sums, plan, sums.total(plan.recompute) - sums.plain);
  const bool paired = plan.schedule->route == Route::both_ways;
  const double hidden = paired ? hidden_share(job, sums.exchanging) : 0;
  bound.outside =
      optimizer_time(job, plan, average_stage(shares, plan)) + job.job.training.stack.step_overhead;
  return with_span(bound, std::max(span, passes * (1 - hidden)));
}

PlanBound plan_bound(const PreparedJob& job, const ParameterShares& shares, const PassSums& sums,
                     const Plan& plan, Seconds span) {
  PlanBound bound = time_bound(job, shares, sums, plan, span);
  const StageParameters average = average_stage(shares, plan);
  bound.memory = memory_of(job, sums, plan, average) * kRounding;
  const Cluster& cluster = job.job.cluster;
  const Bytes on_host =
      states_at(job.job.training, plan, average, OffloadTarget::host).allocated() * kRounding;
  bound.fullness = fullness(cluster, {bound.memory, on_host * cluster.devices_per_node});
  return bound;
}

// Counts like `computing_time` (model/cost/estimate.h), without the optimizer: wherever the layers
// lie, all stages together run each layer once for a micro-batch.
Seconds computing_floor(const PassSums& sums, const Plan& plan, Seconds repeated) {
  return (sums.kernels + repeated) * kRounding * plan.microbatches / plan.pipeline_parallel;
}

void StageBounds::set_stages(const Plan& plan) {
  stage_parameters(job_, plan, held_);
  end_of_run_.assign(held_.size(), held_.size());
  for (std::size_t stage = held_.size() - 1; stage > 0; --stage) {
    const bool alike = held_alike(held_[stage - 1], held_[stage]);
    end_of_run_[stage - 1] = alike ? end_of_run_[stage] : stage;
  }
}

void StageBounds::set_passes(const Plan& plan) {
  units_.clear();
  units_of_.resize(held_.size());
  passes_.resize(held_.size());
  for (std::size_t stage = 0; stage < held_.size();) {
    const std::size_t end = end_of_alike(plan, stage);
    UnitPasses& units = units_.emplace_back();
    const int index = static_cast<int>(stage);
    set_unit_passes(costs_, plan, held_[stage], repeated_on_stage(job_, plan, held_[stage], index),
                    units);
    const PassTimes passes = stage_passes(units, held_[stage]);
    for (; stage < end; ++stage) {
      units_of_[stage] = units_.size() - 1;
      passes_[stage] = passes;
    }
  }
  busy_ = busy_of(plan, passes_);
  span_.reset();
  ramp_.reset();
  chunk_passes_.clear();
}

std::size_t StageBounds::end_of_alike(const Plan& plan, std::size_t stage) const {
  const bool one_way = job_.only_kind || !repeats_some(job_.job.training.stack, plan.recompute);
  if (plan.recompute_per_stage.empty() && one_way) return end_of_run_[stage];
  std::size_t end = stage + 1;
  while (end < held_.size() && pass_alike(plan, end, stage)) ++end;
  return end;
}

bool StageBounds::pass_alike(const Plan& plan, std::size_t stage, std::size_t other) const {
  if (end_of_run_[stage] != end_of_run_[other]) return false;
  // Which of unlike layers are repeated depends on their order.
  const Recompute recompute = recompute_of(plan, static_cast<int>(stage));
  if (repeats_some(job_.job.training.stack, recompute) && !job_.only_kind) return false;
  if (plan.recompute_per_stage.empty()) return true;
  return recompute_of(plan, static_cast<int>(stage)) == recompute_of(plan, static_cast<int>(other));
}

bool StageBounds::holds_alike(const Plan& plan, std::size_t stage, std::size_t other) const {
  const StageParameters& a = held_[stage];
  const StageParameters& b = held_[other];
  return a.dense == b.dense && a.experts == b.experts && a.layers == b.layers &&
         pass_alike(plan, stage, other);
}

Seconds StageBounds::busy_of(const Plan& plan, const std::vector<PassTimes>& passes) {
  Seconds busy;
  if (plan.schedule->route == Route::both_ways) return busy;
  for (const PassTimes& stage : passes) busy = std::max(busy, stage.total());
  return busy * plan.microbatches;
}

// Where micro-batches go both ways, each layer lies on two stages, and each of the two runs it for
// half of the micro-batches.
Seconds StageBounds::repeated(const Plan& plan) const {
  const PipelineShape shape = pipeline_shape(plan);
  const double share = static_cast<double>(shape.chunks) / chunks_held(shape);
  Seconds sum;
  for (std::size_t stage = 0; stage < held_.size(); ++stage) {
    const StageParameters& held = held_[stage];
    const RepeatedOnStage own = repeated_on_stage(job_, plan, held, static_cast<int>(stage));
    for (std::size_t kind = 0; kind < held.kinds.size(); ++kind) {
      if (held.kinds[kind] == 0) continue;
      const LayerCost& layer = costs_.layers[kind];
      sum += share * held.kinds[kind] *
             (own.full[kind] * layer.full_recompute.total() +
              own.selective * layer.selective_recompute.total());
    }
  }
  return sum;
}

Seconds StageBounds::busy_with(const Plan& plan, int repeated) const {
  Seconds busy;
  if (plan.schedule->route == Route::both_ways) return busy;
  for (std::size_t stage = 0; stage < held_.size(); ++stage) {
    if (stage > 0 && job_.only_kind && pass_alike(plan, stage, stage - 1)) continue;
    const StageParameters& held = held_[stage];
    const RepeatedShares shares =
        repeated_shares(job_, plan, held, static_cast<int>(stage), {RecomputeMode::full, repeated});
    Seconds full;
    for (std::size_t kind = 0; kind < held.kinds.size(); ++kind) {
      if (held.kinds[kind] == 0) continue;
      full += costs_.layers[kind].full_recompute.total() * (held.kinds[kind] * shares[kind]);
    }
    busy = std::max(busy, (passes_[stage].total() + full) * plan.microbatches);
  }
  return busy;
}

// The link brings weights twice (forward, backward) and takes gradients away once.
Seconds StageBounds::link_with(const Plan& plan, int repeated) const {
  Seconds most;
  if (plan.schedule->route == Route::both_ways) return most;
  for (std::size_t stage = 0; stage < held_.size(); ++stage) {
    if (stage > 0 && holds_alike(plan, stage, stage - 1)) continue;
    const StageParameters& held = held_[stage];
    const Bytes away = activations_sent_away(plan, costs_, held, {RecomputeMode::full, repeated});
    const OffloadCopies copies = offload_copies(job_, plan, held, away);
    const Seconds back = 2 * copies.weights + copies.activations + copies.beside.weight_gradient;
    if (copies.activations > Seconds(0)) most = std::max(most, back * plan.microbatches);
  }
  return most;
}

void StageBounds::take_chunks(const Plan& plan, const std::vector<PassTimes>& passes,
                              std::vector<PassTimes>& chunks) const {
  chunks.clear();
  for (std::size_t stage = 0; stage < passes.size(); ++stage) {
    const int index = static_cast<int>(stage);
    const bool has_end = held_[stage].embedding || held_[stage].head;
    const bool repeats = stage > 0 && !has_end && pass_alike(plan, stage, stage - 1);
    if (repeats && repeat_chunk_passes(job_, plan, index, chunks)) continue;
    append_chunk_passes(job_, plan, {index, held_[stage], units_[units_of_[stage]], passes[stage]},
                        chunks);
  }
}

const std::vector<PassTimes>& StageBounds::chunk_passes(const Plan& plan) {
  if (chunk_passes_.empty()) take_chunks(plan, passes_, chunk_passes_);
  return chunk_passes_;
}

Seconds StageBounds::span_of(const Plan& plan, const std::vector<PassTimes>& passes) {
  const PipelineShape shape = pipeline_shape(plan);
  const Schedule& schedule = *plan.schedule;
  if (shape.route == Route::both_ways || schedule.closed_span == nullptr) return Seconds(0);
  if (shape.chunks == 1) return schedule.closed_span(shape, passes);
  if (&passes == &passes_) return longest_span_of_chunks(job_, plan, chunk_passes(plan));
  take_chunks(plan, passes, chunks_with_copies_);
  return longest_span_of_chunks(job_, plan, chunks_with_copies_);
}

// The last stage's passes of m micro-batches, and one micro-batch's in the first chunks of all
// stages before it. The estimate adds exposed traffic of parameters to the passes, and takes off
// the part that a stage exposes while it waits for others: what it takes off is part of what it
// adds, so that both may be left out.
Seconds StageBounds::last_stage(const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  if (schedule.route != Route::loop || schedule.splits_backward) return Seconds(0);
  if (ramp_) return *ramp_;
  const std::size_t chunks = static_cast<std::size_t>(pipeline_shape(plan).chunks);
  const std::vector<PassTimes>& first = chunks > 1 ? chunk_passes(plan) : passes_;
  ramp_ = passes_.back().total() * plan.microbatches;
  for (std::size_t stage = 0; stage + 1 < passes_.size(); ++stage) {
    *ramp_ += first[stage * chunks].total();
  }
  return *ramp_;
}

StageBounds::ShownCopies StageBounds::shown_copies(const Plan& plan, std::size_t stage) const {
  const Recompute named = recompute_of(plan, static_cast<int>(stage));
  const Recompute recompute = what_is_repeated(job_.job.training.stack, named, held_[stage].layers);
  const Bytes away = activations_sent_away(plan, costs_, held_[stage], recompute);
  constexpr double kAllChunks = 1;
  const OffloadCopies copies = offload_copies(job_, plan, held_[stage], away);
  const UnitPasses& units = units_[units_of_[stage]];
  const EndPasses ends{units.embedding, units.head};
  return {exposed_copies(copies, kAllChunks, passes_[stage], ends),
          copies_before_passes(copies, kAllChunks, passes_[stage], ends)};
}

// Where micro-batches go both ways, a stage runs half of passes_ for a micro-batch: copies then
// count as exposed.
bool StageBounds::copies_show(const Plan& plan) const {
  if (plan.schedule->route == Route::both_ways) return true;
  for (std::size_t stage = 0; stage < held_.size(); ++stage) {
    if (stage > 0 && holds_alike(plan, stage, stage - 1)) continue;
    if (shown_copies(plan, stage).in_passes.total() > Seconds(0)) return true;
  }
  return false;
}

// Copies before the first unit of a pass cost nothing on a stage that waits for the one before it.
void StageBounds::take_copies(const Plan& plan) {
  with_copies_ = passes_;
  hidden_copies_ = Seconds(0);
  ShownCopies shown;
  for (std::size_t stage = 0; stage < held_.size(); ++stage) {
    if (stage == 0 || !holds_alike(plan, stage, stage - 1)) shown = shown_copies(plan, stage);
    with_copies_[stage].add(shown.in_passes);
    if (stage > 0) hidden_copies_ += shown.before_passes / plan.virtual_stages;
  }
}

Seconds StageBounds::pipeline(const Plan& plan) {
  if (plan.schedule->route == Route::both_ways) return Seconds(0);
  // From ZeRO-2 on passes hold traffic of parameters, which lengthens unlike stages differently.
  const bool alike = plan.held_zero_stage() <= 1;
  if (plan.offload == Offload{}) {
    if (!alike) return std::max(busy_, last_stage(plan));
    if (!span_) span_ = span_of(plan, passes_);
    return std::max(busy_, *span_);
  }
  if (!alike && !plan.overlap.data_parallel) {  // the traffic then hides copies
    return std::max(busy_, last_stage(plan));
  }
  take_copies(plan);
  const Seconds busy = busy_of(plan, with_copies_);
  return std::max(busy, alike ? span_of(plan, with_copies_) - hidden_copies_ : last_stage(plan));
}

MemoryUse StageBounds::memory_at(const Plan& plan, int stage) const {
  const StageParameters& held = held_[static_cast<std::size_t>(stage)];
  const StageMemory memory = stage_memory(job_, plan, costs_, held, stage);
  return {memory.at_peak.device(), memory.on_host * job_.job.cluster.devices_per_node};
}

// Visits the stages that are mostly the fullest: the first has the embedding and the most
// micro-batches in flight, the second the most of those without an end, and the last has the head.
template <typename Visit>
void StageBounds::visit_fullest(const Plan& plan, const Visit& goes_on) const {
  const int stages = plan.pipeline_parallel;
  for (int i = 0; i < std::min(3, stages); ++i) {
    if (!goes_on(memory_at(plan, i < 2 ? i : stages - 1))) return;
  }
}

MemoryUse StageBounds::memory(const Plan& plan) const {
  MemoryUse most;
  visit_fullest(plan, [&](const MemoryUse& use) {
    most.device = std::max(most.device, use.device);
    most.hosts = std::max(most.hosts, use.hosts);
    return true;
  });
  return most;
}

bool StageBounds::is_too_full(const Plan& plan) const {
  bool too_full = false;
  visit_fullest(plan, [&](const MemoryUse& use) {
    too_full = fullness(job_.job.cluster, use) * kRounding > 1;
    return !too_full;
  });
  return too_full;
}

int StageBounds::most_layers() const {
  int most = 0;
  for (const StageParameters& held : held_) most = std::max(most, held.layers);
  return most;
}

double objective_bound(const PreparedJob& job, Objective objective, const PlanBound& bound) {
  const Cluster& cluster = job.job.cluster;
  switch (objective) {
    case Objective::step_time:
    case Objective::goodput:
      return bound.step.value();
    case Objective::cost: {
      const auto cost = cost_of(cluster, bound.step);
      return cost ? cost->value() : 0;
    }
    case Objective::energy: {
      const auto energy = energy_of(cluster, bound.step, bound.busy);
      return energy ? energy->value() : 0;
    }
    case Objective::memory:
      return bound.memory.value();
  }
  return 0;
}

}  // namespace trainyard
