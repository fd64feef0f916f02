#include "model/cost/estimate.h"

#include <algorithm>
#include <cmath>

#include "model/bisection.h"
#include "model/cost/chunk_passes.h"
#include "model/cost/exposure.h"
#include "model/cost/interval.h"
#include "model/cost/memory/offload.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/money.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/cost/slack.h"

namespace trainyard {
namespace {

// What all stages of a plan share, priced once.
struct SharedCosts {
  const PlanLinks& links;
  StageCosts layers;
  ExchangeUse use;
  PipelineSends sends;
  PricedMessages prices;  // of `links`
  bool stages_lie_alike;
};

SharedCosts shared_costs(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                         const KernelTimeTable* table) {
  const TensorTraffic tensor = tensor_traffic(job, plan, links);
  SharedCosts shared{
      links,
      stage_costs(job, plan, links, tensor, table),
      plan.overlap.data_parallel ? exchange_use(job, plan, links, tensor) : ExchangeUse{},
      pipeline_sends(job, plan, links),
      PricedMessages(links),
      stages_lie_alike(job, plan)};
  add_second_gathers(plan, shared.layers);
  return shared;
}

void add_pass(const PassCost& pass, double times, Breakdown& parts) {
  parts.compute += pass.compute * times;
  parts.recompute += pass.recompute * times;
  parts.tensor_parallel += pass.tensor_parallel * times;
  parts.context_parallel += pass.context_parallel * times;
  parts.expert_parallel += pass.expert_parallel * times;
  parts.launch += pass.launch * times;
}

void add_exchanges(const PassCost& pass, double times, ExchangeTimes& exchanges) {
  exchanges.tensor += pass.tensor_parallel * times;
  exchanges.context += pass.context_parallel * times;
  exchanges.expert += pass.expert_parallel * times;
  exchanges.ring_hidden += pass.ring_hidden * times;
  exchanges.ring_spare += pass.ring_spare * times;
}

// Adds all layers of the stage, recomputation included. Returns the passes of one layer of each
// kind.
LayerPasses add_layers(const StageCosts& costs, const StageParameters& held,
                       const RepeatedOnStage& repeated, double share, StageEstimate& stage,
                       StageWork& work) {
  LayerPasses each;
  for (std::size_t kind = 0; kind < held.kinds.size(); ++kind) {
    const double count = held.kinds[kind] * share;
    if (held.kinds[kind] == 0) continue;
    const LayerCost& layer = costs.layers[kind];
    const double full = repeated.full[kind];
    PassCost input_gradient = layer.input_gradient;
    input_gradient.add(layer.full_recompute, full)
        .add(layer.selective_recompute, repeated.selective);
    add_pass(layer.forward, count, stage.exposed);
    add_pass(input_gradient, count, stage.exposed);
    add_pass(layer.weight_gradient, count, stage.exposed);
    PassTimes& passes = each[kind];
    passes = {layer.forward.total(), input_gradient.total(), layer.weight_gradient.total()};
    stage.passes.add(passes, count);
    work.before_experts[kind] = layer.before_experts;
    work.before_experts_backward[kind] = layer.before_experts_backward;
    add_exchanges(layer.forward, count, work.forward);
    add_exchanges(layer.input_gradient, count, work.backward);
    add_exchanges(layer.weight_gradient, count, work.weight);
    add_exchanges(layer.forward, count * full, work.backward);
  }
  work.repeated = repeated.full;
  work.layers = stage.passes;
  work.each = each;
  return each;
}

// Adds the embedding or the output head, whose kernels the breakdown reports apart from the
// layers'.
void add_end(const LayerCost& end, double share, StageEstimate& stage) {
  const PassCost& f = end.forward;
  const PassCost& b = end.input_gradient;
  const PassCost& w = end.weight_gradient;
  stage.exposed.embedding_head += share * (f.compute + b.compute + w.compute);
  stage.exposed.tensor_parallel +=
      share * (f.tensor_parallel + b.tensor_parallel + w.tensor_parallel);
  stage.exposed.launch += share * (f.launch + b.launch);
  stage.passes.add(end.passes(), share);
}

DataParallelCost data_parallel_cost(const PreparedJob& job, const Plan& plan, SharedCosts& shared,
                                    const StageParameters& held, const StageWork& work) {
  if (shared.stages_lie_alike) {
    return data_parallel_cost(job, plan, shared.links, held, work, shared.prices);
  }
  return data_parallel_cost(job, plan, stage_links(job, plan, shared.links, work.stage), held,
                            work);
}

// Communication of parameters in every micro-batch that compute waits for.
PassTimes blocking_traffic(const PreparedJob& job, const Plan& plan, SharedCosts& shared,
                           const StageParameters& held, const StageWork& work) {
  if (plan.overlap.data_parallel || plan.held_zero_stage() < 2) return {};
  return data_parallel_cost(job, plan, shared, held, work).microbatch;
}

EndPasses end_passes(const StageParameters& held, const UnitPasses& units, double share) {
  EndPasses ends;
  if (held.embedding) ends.embedding.add(units.embedding, share);
  if (held.head) ends.head.add(units.head, share);
  return ends;
}

// Adds the copies to the host and from it as far as they outlast the passes beside them. `blocked`:
// communication of parameters that the passes wait for, beside which copies run as well.
struct CopiesOfStage {
  CopiesAtEnds step;
  Seconds before_passes;
};
CopiesOfStage add_offload(const OffloadCopies& copies, double share, const EndPasses& ends,
                          const PassTimes& blocked, StageEstimate& stage, StageWork& work) {
  PassTimes beside = stage.passes;
  beside.add(blocked);
  const Seconds before_passes = copies_before_passes(copies, share, beside, ends);
  work.copies = exposed_copies(copies, share, beside, ends);
  work.layers.add(work.copies);
  stage.passes.add(work.copies);
  stage.exposed.offload += work.copies.total();
  return {copies_at_ends(copies), before_passes};
}

// Adds to every pass its sends, or where they are overlapped what compute loses to them. Overlapped
// sends are exposed besides in the fill and drain of the pipeline (fill_time()).
void add_sends(const Job& job, const Plan& plan, const PipelineSends& sends, int index,
               StageEstimate& stage) {
  const PassTimes shown = sends_in_passes(job.training.stack, plan, sends, index);
  stage.passes.add(shown);
  stage.exposed.pipeline += shown.total();
}

// What DualPipe's pair of a forward and a backward pass saves: the all-to-alls of one run beside
// the compute of the other.
Seconds hidden_by_pair(const Stack& stack, const StageEstimate& stage) {
  const Seconds exchange = stage.exposed.expert_parallel;
  const Seconds compute = stage.passes.total() - exchange;
  return hidden_behind(compute, exchange, stack);
}

// What data parallelism and the optimizer add once a step (StageEnds): the maxima over the stages,
// because all must be ready for the next step.
struct StepEnds {
  Seconds start, end, optimizer;
  Seconds copies;
  Seconds lost, queued;
  Seconds at_ends_of_passes;  // of one micro-batch: the sum over all stages but the first
  BesideRamps beside_ramps;
};

Flops repeated_flop(const PreparedJob& job, const StageParameters& held,
                    const RepeatedOnStage& repeated, double share) {
  Flops sum;
  for (std::size_t kind = 0; kind < held.kinds.size(); ++kind) {
    const RepeatedFlop& layer = job.repeated_flop[kind];
    sum += held.kinds[kind] * share *
           (repeated.full[kind] * layer.full + repeated.selective * layer.selective);
  }
  return sum;
}

void set_full_recompute(const StageCosts& costs, UnitPasses& units) {
  for (std::size_t kind = 0; kind < units.full_recompute.size(); ++kind) {
    units.full_recompute[kind] = costs.layers[kind].full_recompute.total();
  }
}

// Fills in the passes of one stage and returns what it adds to the ends of the step. `share` of the
// chunks that the stage holds are visited by one micro-batch: half of them where the other half is
// a copy for the micro-batches that go the other way.
StageEnds fill_stage(const PreparedJob& job, const Plan& plan, SharedCosts& shared,
                     std::size_t index, UnitPasses& units, Estimate& out) {
  const StageCosts& costs = shared.layers;
  StageEstimate& stage = out.stages[index];
  const StageParameters& held = out.held[index];
  const PipelineShape shape = pipeline_shape(plan);
  const double share = static_cast<double>(shape.chunks) / chunks_held(shape);
  stage = {};
  StageWork work;
  work.stage = static_cast<int>(index);
  const Recompute recompute = recompute_of(plan, static_cast<int>(index));
  const RepeatedOnStage repeated = repeated_on_stage(job, plan, held, static_cast<int>(index));
  units.layers = add_layers(costs, held, repeated, share, stage, work);
  stage.repeated = repeated_flop(job, held, repeated, share);
  set_full_recompute(costs, units);
  if (held.embedding) {
    add_end(costs.embedding, share, stage);
    units.embedding = costs.embedding.passes();
    work.embedding.add(units.embedding, share);
  }
  if (held.head) {
    add_end(costs.head, share, stage);
    units.head = costs.head.passes();
    work.head.add(units.head, share);
  }
  OffloadCopies offload;
  CopiesOfStage copies;
  if (plan.offload != Offload{}) {
    const Bytes activations = activations_sent_away(
        plan, costs, held, what_is_repeated(job.job.training.stack, recompute, held.layers));
    offload = offload_copies(job, plan, held, activations);
    copies = add_offload(offload, share, end_passes(held, units, share),
                         blocking_traffic(job, plan, shared, held, work), stage, work);
  }
  work.use = shared.use;
  if (plan.overlap.pipeline && shape.route == Route::loop) {
    work.around = shared.sends.around(plan.pipeline_parallel);
  }
  work.passes_at_end = plan.schedule->weight_gradients_at_end(shape, static_cast<int>(index));
  const auto data = data_parallel_cost(job, plan, shared, held, work);
  work.layers.add(data.microbatch);
  copies.step.start += copies_of_first_passes(offload, plan, work.stage, share, work.layers);
  add_sends(job.job, plan, shared.sends, static_cast<int>(index), stage);
  stage.passes.add(data.microbatch);
  stage.exposed.data_parallel += data.microbatch.total();
  if (shape.route == Route::both_ways) {
    stage.passes.hidden = hidden_by_pair(job.job.training.stack, stage);
  }
  return {.start = data.start + copies.step.start,
          .end = data.end + copies.step.end,
          .lost = data.lost,
          .reduced = data.reduced,
          .gathered = data.gathered,
          .lost_to_gathers = data.lost_to_gathers,
          .queued = data.queued + (plan.microbatches - 1) * stage.passes.total(),
          .at_ends_of_passes = data.at_ends + copies.before_passes,
          .optimizer = optimizer_time(job, plan, held) + data.update,
          .copies = copies.step.start + copies.step.end,
          .more_with_embedding = data.more_with_embedding,
          .more_with_head = data.more_with_head,
          .beside_ramps = data.beside_ramps};
}

void take_longer(const BesideSends& own, BesideSends& longest) {
  longest.time = std::max(longest.time, own.time);
  longest.stretch = std::max(longest.stretch, own.stretch);
}

// Whether the reductions that are left at a stage's end depend on the order of its last passes.
bool reduces_behind_passes(const Plan& plan) { return plan.held_zero_stage() == 2; }

// Whether stages that hold the same layers still differ by their place in the pipeline: where
// micro-batches go both ways, by the passes between the last ones of a copy; where they turn back
// (a V), by the activations that return from the host first; under ZeRO-2, by the weight-gradient
// passes at the end.
bool differs_by_place(const Plan& plan) {
  const bool activations_away = plan.offload.activations != OffloadTarget::none;
  const bool last_passes = plan.schedule->weight_gradients_at_end != one_at_end;
  return plan.schedule->route == Route::both_ways ||
         (plan.schedule->route == Route::vee && activations_away) ||
         (reduces_behind_passes(plan) && last_passes);
}

// Whether two stages with the same layers and the same recomputation may still repeat layers of
// unlike kinds, because their layers come in another order or lie in other chunks.
bool repeats_by_order(const PreparedJob& job, const Plan& plan, Recompute recompute) {
  const bool in_chunks = plan.virtual_stages > 1 && !plan.layers_per_stage.empty();
  return repeats_some(job.job.training.stack, recompute) && (!job.only_kind || in_chunks);
}

// Whether this stage costs as much as the one before, so that only its activations have to be
// counted: between the ends of a pipeline most stages hold the same layers and send over the same
// links.
bool repeats_previous(const PreparedJob& job, const Plan& plan, const SharedCosts& shared,
                      const Estimate& out, std::size_t index) {
  if (!shared.stages_lie_alike) return false;
  const auto stage = static_cast<int>(index);
  if (index <= 1 || index + 1 >= out.stages.size() || differs_by_place(plan)) return false;
  const StageParameters& own = out.held[index];
  const StageParameters& before = out.held[index - 1];
  if (!(own.kinds == before.kinds && own.side_by_side == before.side_by_side)) return false;
  // ZeRO-3 gathers layer by layer, so with unlike layers the cost depends on their order.
  if (plan.held_zero_stage() >= 3 && !job.only_kind) return false;
  const Recompute recompute = recompute_of(plan, stage);
  if (!(recompute == recompute_of(plan, stage - 1))) return false;
  if (repeats_by_order(job, plan, recompute)) return false;
  const PipelineShape shape = pipeline_shape(plan);
  const auto splits = [&](int of) { return plan.schedule->chunks_between_halves(shape, of) > 0; };
  const auto sent = [&](int by) {
    return sends_in_passes(job.job.training.stack, plan, shared.sends, by).total();
  };
  return splits(stage) == splits(stage - 1) && sent(stage) == sent(stage - 1);
}

StepEnds fill_stages(const PreparedJob& job, const Plan& plan, SharedCosts& shared, Estimate& out) {
  StepEnds ends;
  StageEnds own;
  UnitPasses units;
  Slack slack(plan, out.losses);
  // Communication beside the passes of one stage. Where rates are of all stages' groups sending at
  // once, over links that stages share, all of them lose no more to it: while the pipeline fills
  // and drains, stages send one after another.
  Seconds beside;
  const PipelineShape shape = pipeline_shape(plan);
  out.chunk_passes.clear();
  for (std::size_t i = 0; i < out.stages.size(); ++i) {
    StageEstimate& stage = out.stages[i];
    const auto index = static_cast<int>(i);
    const bool repeats = repeats_previous(job, plan, shared, out, i);
    if (repeats) {
      stage = out.stages[i - 1];
      fill_activations(job, plan, shared.layers, out.held[i], index, stage.memory);
    } else {
      own = fill_stage(job, plan, shared, i, units, out);
      beside = std::max(beside, own.reduced + own.gathered);
      const StageEnds seen = slack.off(own);
      ends.start = std::max(ends.start, seen.start);
      ends.end = std::max(ends.end, seen.end);
      ends.queued = std::max(ends.queued, seen.queued);
      ends.copies = std::max(ends.copies, own.copies);
      ends.optimizer = std::max(ends.optimizer, own.optimizer);
      take_longer(own.beside_ramps.filling, ends.beside_ramps.filling);
      take_longer(own.beside_ramps.draining, ends.beside_ramps.draining);
      stage.memory = stage_memory(job, plan, shared.layers, out.held[i], index);
    }
    slack.pass(stage.passes, own, out.held[i].layers);
    if (i > 0) ends.at_ends_of_passes += own.at_ends_of_passes;
    out.passes[i] = stage.passes;
    if (chunks_held(shape) == 1) continue;
    if (!repeats || !repeat_chunk_passes(job, plan, index, out.chunk_passes)) {
      const StagePasses passes = {
          index, out.held[i], units, stage.passes, own.more_with_embedding, own.more_with_head};
      append_chunk_passes(job, plan, passes, out.chunk_passes);
    }
  }
  ends.lost = slack.lost(out.passes);
  if (shared.links.dense_gradient.loads != nullptr) ends.lost = std::min(ends.lost, beside);
  ends.end = std::max(ends.end, ends.queued - (plan.microbatches - 1) * slack.longest());
  return ends;
}

int argmax_stage(const Estimate& out, auto&& key) {
  int best = 0;
  auto most = key(out.stages.front());
  for (std::size_t i = 1; i < out.stages.size(); ++i) {
    if (const auto own = key(out.stages[i]); own > most) {
      most = own;
      best = static_cast<int>(i);
    }
  }
  return best;
}

// Without an optimizer barrier steps follow each other at one span; with a barrier the step is the
// makespan (handbook §8).
Seconds pipeline_time(const PreparedJob& job, const Plan& plan, const Estimate& out) {
  const Schedule& schedule = *plan.schedule;
  const bool of_chunks = !out.chunk_passes.empty();
  // Where weight gradients are deferred, a stage that begins later may be the last to end.
  const bool split = schedule.splits_backward && schedule.closed_makespan != nullptr;
  if (plan.optimizer_barrier && (split || !schedule.optimizer_barrier)) {
    return makespan(schedule, pipeline_shape(plan), of_chunks ? out.chunk_passes : out.passes);
  }
  return of_chunks ? longest_span_of_chunks(job, plan, out.chunk_passes)
                   : longest_span(schedule, pipeline_shape(plan), out.passes);
}

// While the pipeline fills and drains, stages behind the first wait for others. In that time they
// gather the weights of a pass's first unit and reduce the gradients of its last one.
Seconds hidden_in_ramp(const Plan& plan, const StepEnds& ends) {
  return ends.at_ends_of_passes / plan.virtual_stages;
}

// Sends without the part that the passes on both sides of them are charged already (add_sends()):
// a stage of a loop that waits for a micro-batch has no compute beside it.
PipelineSends beyond_passes(const Stack& stack, const Plan& plan, PipelineSends sends) {
  if (plan.schedule->route != Route::loop) return sends;
  const double share = std::max(0.0, 1 - 2 * stack.overlap_slowdown);
  return share * sends;
}

// Whether a pipeline is timed as its schedule runs it, or as if no stage ever waited.
enum class Pipeline { scheduled, never_waits };

// Expected maximum of n standard normal variables (Blom 1958): the quantile at (n − 0.375)/(n +
// 0.25), by the rational approximation of Abramowitz & Stegun 26.2.23.
double expected_maximum(double n) {
  if (n <= 1) return 0;
  const double tail = 0.625 / (n + 0.25);
  const double u = std::sqrt(-2 * std::log(tail));
  return u - (2.515517 + u * (0.802853 + u * 0.010328)) /
                 (1 + u * (1.432788 + u * (0.189269 + u * 0.001308)));
}

void fill_step(const PreparedJob& job, const Plan& plan, const PipelineSends& sends, StepEnds ends,
               Pipeline pipeline, Estimate& out) {
  out.slowest_stage = argmax_stage(out, [](const StageEstimate& s) { return s.passes.total(); });
  const StageEstimate& slowest = out.stages[static_cast<std::size_t>(out.slowest_stage)];
  const Seconds hidden =
      slowest.passes.hidden * plan.schedule->pairs(pipeline_shape(plan), out.slowest_stage);
  const Seconds busy = slowest.passes.total() * plan.microbatches - hidden;
  const Stack& stack = job.job.training.stack;
  Breakdown& parts = out.breakdown;
  parts = slowest.exposed;
  parts *= plan.microbatches;
  parts.expert_parallel -= hidden;
  if (pipeline == Pipeline::scheduled) {
    const Seconds span = pipeline_time(job, plan, out) - hidden_in_ramp(plan, ends);
    parts.bubble = std::max(Seconds(0), span - busy);
    parts.pipeline += waits_for_sends(plan, out.passes, beyond_passes(stack, plan, sends));
  }
  parts.pipeline += fill_time(stack, plan, out.chunk_passes.empty() ? out.passes : out.chunk_passes,
                              sends, ends.beside_ramps);
  const Seconds copies = std::min(ends.copies, ends.start + ends.end);
  parts.data_parallel += ends.start + ends.end + ends.lost - copies;
  parts.offload += copies;
  parts.optimizer = plan.offload.optimizer == OffloadTarget::none ? ends.optimizer : Seconds(0);
  parts.offload += plan.offload.optimizer == OffloadTarget::none ? Seconds(0) : ends.optimizer;
  parts.other = stack.step_overhead + lost_to_slowest_rank(stack, plan, parts);
  out.step_time = parts.total();
  const Interval interval = step_interval(job.job, plan);
  out.step_time_low = out.step_time * interval.low;
  out.step_time_high = out.step_time * interval.high;
}

// FLOP of the whole step that recomputation repeats above the kernel's interface (handbook §3).
Flops recomputed_flop(const PreparedJob& job, const Estimate& out) {
  Flops of_sequence;
  for (const StageEstimate& stage : out.stages) of_sequence += stage.repeated;
  return of_sequence * static_cast<double>(job.job.training.global_batch);
}

void fill_rates(const PreparedJob& job, const Plan& plan, Estimate& out) {
  const Training& training = job.job.training;
  const Device& device = job.job.cluster.device;
  const double devices = plan.devices();
  const double tokens =
      static_cast<double>(training.global_batch) * static_cast<double>(training.sequence_length);
  out.tokens_per_second = tokens / out.step_time.value();
  out.model_flops_per_device = job.model_flop / out.step_time / devices;
  const FlopsPerSecond peak = device.peak_of(training.precision.layer_gemm);
  const FlopsPerSecond half = std::max(device.peak_of(Dtype::bf16), device.peak_of(Dtype::fp16));
  out.mfu = out.model_flops_per_device / peak;
  out.mfu_bf16 = out.model_flops_per_device / half;
  out.hfu = (job.model_flop + recomputed_flop(job, out)) / out.step_time / devices / peak;
}

void price(const PreparedJob& job, const Plan& plan, const PlanLinks& links, Pipeline pipeline,
           const KernelTimeTable* table, Estimate& out) {
  const auto stages = static_cast<std::size_t>(plan.pipeline_parallel);
  stage_parameters(job, plan, out.held);
  out.stages.resize(stages);
  out.passes.resize(stages);
  SharedCosts shared = shared_costs(job, plan, links, table);
  const StepEnds ends = fill_stages(job, plan, shared, out);
  fill_step(job, plan, shared.sends, ends, pipeline, out);
  fill_rates(job, plan, out);
  fill_peaks(job.job, out);
  const Cluster& cluster = job.job.cluster;
  out.cost_per_step = cost_of(cluster, out.step_time);
  out.energy_per_step = energy_of(cluster, out.step_time, computing_time(plan, out));
}

}  // namespace

Seconds computing_time(const Plan& plan, const Estimate& estimate) {
  Seconds sum;
  for (const StageEstimate& stage : estimate.stages) {
    const Breakdown& parts = stage.exposed;
    sum += parts.compute + parts.embedding_head + parts.recompute;
  }
  return sum * (plan.microbatches / static_cast<double>(estimate.stages.size())) +
         estimate.breakdown.optimizer;
}

void fill_peaks(const Job& job, Estimate& out) {
  out.fullest_stage =
      argmax_stage(out, [](const StageEstimate& s) { return s.memory.at_peak.device(); });
  const MemoryByKind& peak = out.stages[static_cast<std::size_t>(out.fullest_stage)].memory.at_peak;
  out.peak_allocated = peak.allocated();
  out.peak_reserved = peak.reserved();
  out.peak_memory = peak.device();
  const Interval interval = memory_interval(job.training.stack);
  out.peak_memory_low = out.peak_memory * interval.low;
  out.peak_memory_high = out.peak_memory * interval.high;
  Bytes on_host;
  for (const StageEstimate& stage : out.stages) on_host = std::max(on_host, stage.memory.on_host);
  out.host_memory = on_host * job.cluster.devices_per_node;
  out.fullness = fullness(job.cluster, {out.peak_memory, out.host_memory});
  out.feasible = out.fullness <= 1;
}

void estimate(const PreparedJob& job, const Plan& plan, Estimate& out) {
  price(job, plan, plan_links(job, plan), Pipeline::scheduled, nullptr, out);
}

void Estimator::estimate(const Plan& plan, Estimate& out) const {
  price(job_, plan, links(plan), Pipeline::scheduled, &kernels_, out);
}

void Estimator::estimate_bound(const Plan& plan, Estimate& out) const {
  price(job_, plan, links(plan), Pipeline::never_waits, &kernels_, out);
}

PlanLinks Estimator::links(const Plan& plan) const {
  PlanLinks links = plan_links(job_, plan);
  links.choice.known = &collectives_;
  return links;
}

StageCosts Estimator::stage_costs(const Plan& plan, const PlanLinks& links) const {
  return trainyard::stage_costs(job_, plan, links, tensor_traffic(job_, plan, links), &kernels_);
}

Estimate estimate(const PreparedJob& job, const Plan& plan) {
  Estimate out;
  estimate(job, plan, out);
  return out;
}

namespace {

// The plan that offloads the activations of as few layers as needed to the host instead of
// recomputing, if the stack can do that and it is faster. (Megatron-Core offloads neither under a
// pipeline nor beside recomputation.)
Plan offloaded_if_faster(const PreparedJob& job, const Plan& recomputed, int layers) {
  const bool can = job.job.training.stack.offloads_activations && recomputed.zero_stage >= 3 &&
                   recomputed.pipeline_parallel == 1;
  if (!can) return recomputed;
  Plan offloaded = recomputed;
  offloaded.recompute = {RecomputeMode::none, 0};
  offloaded.offload.activations = OffloadTarget::host;
  Estimate out;
  offloaded.offload.activation_layers = first_where(1, layers, [&](int away) {
    offloaded.offload.activation_layers = away;
    estimate(job, offloaded, out);
    return out.feasible;
  });
  estimate(job, offloaded, out);
  const bool faster = out.feasible && out.step_time < estimate(job, recomputed).step_time;
  return faster ? offloaded : recomputed;
}

}  // namespace

double slowest_rank_factor(const Stack& stack, const Plan& plan) {
  return 1 + stack.rank_spread * expected_maximum(plan.devices());
}

Seconds lost_to_slowest_rank(const Stack& stack, const Plan& plan, const Breakdown& parts) {
  const Seconds paced = parts.compute + parts.embedding_head + parts.recompute + parts.bubble;
  return paced * (slowest_rank_factor(stack, plan) - 1);
}

Plan resolve_recompute(const PreparedJob& job, Plan plan) {
  if (plan.recompute.mode != RecomputeMode::automatic) return plan;
  Estimate out;
  const auto fits = [&](Recompute recompute) {
    plan.recompute = recompute;
    estimate(job, plan, out);
    return out.feasible;
  };
  const Stack& stack = job.job.training.stack;
  if (fits({RecomputeMode::none, 0})) return plan;
  if (stack.limits.selective_recompute && fits({RecomputeMode::selective, 0})) return plan;
  int layers = 0;
  for (const StageParameters& stage : out.held) layers = std::max(layers, stage.layers);
  if (stack.partial_recompute == PartialRecompute::none) {
    plan.recompute = {RecomputeMode::full, 0};
    return offloaded_if_faster(job, plan, layers);
  }
  const int full = first_where(1, layers, [&](int repeated) {
    return fits({RecomputeMode::full, repeated});
  });
  plan.recompute = {RecomputeMode::full, full >= layers ? 0 : full};
  return offloaded_if_faster(job, plan, layers);
}

double causal_mfu(const PreparedJob& job, const Estimate& estimate) {
  const Flops causal = model_flop(job.job.model, job.job.training, AttentionCount::causal);
  return estimate.mfu * (causal / job.model_flop);
}

}  // namespace trainyard
