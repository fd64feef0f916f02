#include "model/cost/estimate.h"

#include <algorithm>

#include "model/bisection.h"
#include "model/cost/chunk_passes.h"
#include "model/cost/interval.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/money.h"
#include "model/cost/sharding/gradient_buckets.h"
#include "model/cost/slack.h"
#include "model/cost/slowest_rank.h"
#include "model/cost/stage_price.h"

namespace trainyard {
namespace {

// What data parallelism and the optimizer add once a step (StageEnds): the maxima over the stages,
// because all must be ready for the next step.
struct StepEnds {
  Seconds start, end, optimizer;
  Seconds copies;
  Seconds lost, queued;
  Seconds at_ends_of_passes;  // of one micro-batch: the sum over all stages but the first
  BesideRamps beside_ramps;
};

void take_longer(const BesideSends& own, BesideSends& longest) {
  longest.time = std::max(longest.time, own.time);
  longest.stretch = std::max(longest.stretch, own.stretch);
}

void take_longer(const StageEnds& own, StepEnds& longest) {
  longest.start = std::max(longest.start, own.start);
  longest.end = std::max(longest.end, own.end);
  longest.queued = std::max(longest.queued, own.queued);
  longest.optimizer = std::max(longest.optimizer, own.optimizer);
  take_longer(own.beside_ramps.filling, longest.beside_ramps.filling);
  take_longer(own.beside_ramps.draining, longest.beside_ramps.draining);
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

// Consecutive stages that run on one job's cluster. Those of a usual plan are all of them.
struct StagesOfJob {
  const PreparedJob& job;
  SharedCosts shared;
  int first, end;
};

// In which a stage's gradients are reduced beside passes: one a layer; with buckets one a chunk,
// but for the first.
int reduction_messages(const PreparedJob& job, const Plan& plan, const StageParameters& held) {
  return uses_buckets(job.job.training, plan) ? plan.virtual_stages : held.layers;
}

StepEnds fill_stages(std::span<StagesOfJob> groups, const Plan& plan, Estimate& out) {
  StepEnds ends;
  PricedStage own;
  Slack slack(plan, out.losses);
  // Communication beside the passes of one stage. Where rates are of all stages' groups sending at
  // once, over links that stages share, all of them lose no more to it: while the pipeline fills
  // and drains, stages send one after another.
  Seconds beside;
  const PipelineShape shape = pipeline_shape(plan);
  out.chunk_passes.clear();
  auto group = groups.begin();
  for (std::size_t i = 0; i < out.stages.size(); ++i) {
    StageEstimate& stage = out.stages[i];
    const auto index = static_cast<int>(i);
    if (index == group->end) ++group;
    const PreparedJob& job = group->job;
    SharedCosts& shared = group->shared;
    const bool repeats = index > group->first && repeats_previous(job, plan, shared, out, i);
    if (repeats) {
      stage = out.stages[i - 1];
      fill_activations(job, plan, shared.layers, out.held[i], index, stage.memory);
    } else {
      own = price_stage(job, plan, shared, out.held[i], index);
      stage = own.estimate;
      beside = std::max(beside, own.ends.reduced + own.ends.gathered);
      take_longer(slack.off(own.ends), ends);
      ends.copies = std::max(ends.copies, own.ends.copies);
      stage.memory = stage_memory(job, plan, shared.layers, out.held[i], index);
    }
    slack.pass(stage.passes, own.ends, reduction_messages(job, plan, out.held[i]));
    if (i > 0) ends.at_ends_of_passes += own.ends.at_ends_of_passes;
    out.passes[i] = stage.passes;
    if (chunks_held(shape) == 1) continue;
    if (!repeats || !repeat_chunk_passes(job, plan, index, out.chunk_passes)) {
      const StagePasses passes = {index,
                                  out.held[i],
                                  own.units,
                                  stage.passes,
                                  own.ends.more_with_embedding,
                                  own.ends.more_with_head};
      append_chunk_passes(job, plan, passes, out.chunk_passes);
    }
  }
  ends.lost = slack.lost(out.passes);
  const bool share_links = std::ranges::all_of(groups, [](const StagesOfJob& of) {
    return of.shared.links.dense_gradient.loads != nullptr;
  });
  if (share_links) ends.lost = std::min(ends.lost, beside);
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

// What sends add to the step once: in fill and drain those of all groups of stages, and the waits
// of the group that holds up the others the most.
Seconds added_by_sends(std::span<const StagesOfJob> groups, const Plan& plan, Pipeline pipeline,
                       const BesideRamps& beside, const Estimate& out) {
  const auto& chunks = out.chunk_passes.empty() ? out.passes : out.chunk_passes;
  Seconds fill, waits;
  for (const StagesOfJob& of : groups) {
    const Stack& stack = of.job.job.training.stack;
    const PipelineSends& sends = of.shared.sends;
    fill += fill_time(stack, plan, chunks, sends, beside);
    if (pipeline == Pipeline::never_waits) continue;
    waits = std::max(waits, waits_for_sends(plan, out.passes, beyond_passes(stack, plan, sends)));
  }
  return fill + waits;
}

void fill_step(std::span<const StagesOfJob> groups, const Plan& plan, StepEnds ends,
               Pipeline pipeline, Estimate& out) {
  const PreparedJob& job = groups.front().job;
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
  }
  parts.pipeline += added_by_sends(groups, plan, pipeline, ends.beside_ramps, out);
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

// Prices all stages on the clusters of these jobs, except what follows for a whole cluster.
void price_stages(std::span<StagesOfJob> groups, const Plan& plan, Pipeline pipeline,
                  Estimate& out) {
  const auto stages = static_cast<std::size_t>(plan.pipeline_parallel);
  stage_parameters(groups.front().job, plan, out.held);
  out.stages.resize(stages);
  out.passes.resize(stages);
  const StepEnds ends = fill_stages(groups, plan, out);
  fill_step(groups, plan, ends, pipeline, out);
}

void price(const PreparedJob& job, const Plan& plan, const PlanLinks& links, Pipeline pipeline,
           const KernelTimeTable* table, Estimate& out) {
  StagesOfJob all{job, shared_costs(job, plan, links, table), 0, plan.pipeline_parallel};
  price_stages({&all, 1}, plan, pipeline, out);
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

void Estimator::estimate_pipeline(std::span<const StagesOn> on, const Plan& plan, Estimate& out) {
  std::vector<PlanLinks> links;
  links.reserve(on.size());
  std::vector<StagesOfJob> groups;
  int first = 0;
  for (const StagesOn& stages : on) {
    const Estimator& own = *stages.estimator;
    links.push_back(stages.links);
    links.back().choice.known = &own.collectives_;
    SharedCosts shared = shared_costs(own.job_, plan, links.back(), &own.kernels_);
    shared.sends = stages.sends;
    groups.push_back({own.job_, shared, first, first + stages.stages});
    first += stages.stages;
  }
  price_stages(groups, plan, Pipeline::scheduled, out);
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
