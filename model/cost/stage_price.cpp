#include "model/cost/stage_price.h"

#include <cstddef>

#include "model/cost/exposure.h"
#include "model/cost/memory/offload.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/cost/sharding/data_parallel.h"

namespace trainyard {
namespace {

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

// Adds those that the stage holds.
void add_ends(const StageCosts& costs, const StageParameters& held, double share,
              PricedStage& priced, StageWork& work) {
  if (held.embedding) {
    add_end(costs.embedding, share, priced.estimate);
    priced.units.embedding = costs.embedding.passes();
    work.embedding.add(priced.units.embedding, share);
  }
  if (held.head) {
    add_end(costs.head, share, priced.estimate);
    priced.units.head = costs.head.passes();
    work.head.add(priced.units.head, share);
  }
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

}  // namespace

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

PricedStage price_stage(const PreparedJob& job, const Plan& plan, SharedCosts& shared,
                        const StageParameters& held, int index) {
  const StageCosts& costs = shared.layers;
  PricedStage priced;
  StageEstimate& stage = priced.estimate;
  UnitPasses& units = priced.units;
  const PipelineShape shape = pipeline_shape(plan);
  // Of the chunks that the stage holds one micro-batch visits this share: half of them where the
  // other half is a copy for the micro-batches that go the other way.
  const double share = static_cast<double>(shape.chunks) / chunks_held(shape);
  StageWork work;
  work.stage = index;
  const Recompute recompute = recompute_of(plan, index);
  const RepeatedOnStage repeated = repeated_on_stage(job, plan, held, index);
  units.layers = add_layers(costs, held, repeated, share, stage, work);
  stage.repeated = repeated_flop(job, held, repeated, share);
  set_full_recompute(costs, units);
  add_ends(costs, held, share, priced, work);
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
    work.around = shared.sends.around();
  }
  work.passes_at_end = plan.schedule->weight_gradients_at_end(shape, index);
  const auto data = data_parallel_cost(job, plan, shared, held, work);
  work.layers.add(data.microbatch);
  copies.step.start += copies_of_first_passes(offload, plan, work.stage, share, work.layers);
  add_sends(job.job, plan, shared.sends, index, stage);
  stage.passes.add(data.microbatch);
  stage.exposed.data_parallel += data.microbatch.total();
  if (shape.route == Route::both_ways) {
    stage.passes.hidden = hidden_by_pair(job.job.training.stack, stage);
  }
  priced.ends = {.start = data.start + copies.step.start,
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
  return priced;
}

}  // namespace trainyard
