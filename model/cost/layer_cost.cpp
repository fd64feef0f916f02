#include "model/cost/layer_cost.h"

#include <algorithm>

#include "model/cost/exposure.h"
#include "model/plan/layer_shard.h"

namespace trainyard {
namespace {

// Ring attention sends keys and values on while it computes with others: a step takes as long as
// the longer of the two, where the computing is slowed by the messages beside it. The other
// context-parallel algorithms have nothing to hide behind.
struct RingStep {
  Seconds pass, block;  // one message; computing one block of attention
  double slowdown = 0;
  // Of `times` blocks with `passes` messages beside each: the exposed time, the hidden messages,
  // and how much longer the blocks are than the messages.
  Seconds exposed(int times, int passes) const {
    const Seconds all = passes * pass;
    return times * std::max(all - block, slowdown * all);
  }
  Seconds hidden(int times, int passes) const { return times * std::min(passes * pass, block); }
  Seconds spare(int times, int passes) const {
    return times * std::max(Seconds(0), block - passes * pass);
  }
};

struct Ring {
  RingStep forward, backward;
  int steps = 1;
};

Ring ring_of(PassTraffic traffic, const KernelTimes& kernels, int steps, double slowdown) {
  return {{traffic.forward / (steps - 1), kernels.attention_core_forward / steps, slowdown},
          {traffic.backward / (2 * (steps - 1)), kernels.attention_core_backward / steps, slowdown},
          steps};
}

bool hides_ring(const Plan& plan, const LayerTraffic& layer) {
  return plan.overlap.context_parallel && layer.context_steps > 1;
}

// Forward, every block but the last has the keys and values of the next one beside it. Backward
// too, and every block but the first also the gradients of those before: so two blocks have one
// message beside them and the others two.
PassTraffic exposed_context(const Ring& ring) {
  const int steps = ring.steps;
  return {ring.forward.exposed(steps - 1, 1),
          ring.backward.exposed(2, 1) + ring.backward.exposed(steps - 2, 2)};
}

void add_hidden_ring(const Ring& ring, LayerCost& cost) {
  const int steps = ring.steps;
  cost.forward.ring_hidden = ring.forward.hidden(steps - 1, 1);
  cost.forward.ring_spare = ring.forward.spare(steps - 1, 1);
  cost.input_gradient.ring_hidden = ring.backward.hidden(2, 1) + ring.backward.hidden(steps - 2, 2);
  cost.input_gradient.ring_spare = ring.backward.spare(2, 1) + ring.backward.spare(steps - 2, 2);
}

Seconds exposed_exchange(Seconds traffic, Seconds cover, const Plan& plan, const Stack& stack) {
  if (!plan.overlap.expert_parallel) return traffic;
  return traffic - hidden_behind(cover, traffic, stack);
}

struct ExposedTraffic {
  PassTraffic tensor, context, expert;
};

ExposedTraffic exposed_traffic(const PreparedJob& job, const Plan& plan,
                               const LayerTraffic& traffic, const KernelTimes& kernels) {
  const Stack& stack = job.job.training.stack;
  const double tensor_shown = shown_of_tensor_parallel(stack, plan);
  ExposedTraffic out;
  out.tensor = {traffic.tensor_parallel.forward * tensor_shown,
                traffic.tensor_parallel.backward * tensor_shown};
  out.expert = {
      exposed_exchange(traffic.expert_parallel.forward, kernels.all.forward, plan, stack),
      exposed_exchange(traffic.expert_parallel.backward,
                       kernels.all.input_gradient + kernels.all.weight_gradient, plan, stack)};
  out.context = traffic.context_parallel;
  if (hides_ring(plan, traffic)) {
    out.context = exposed_context(
        ring_of(traffic.context_parallel, kernels, traffic.context_steps, stack.overlap_slowdown));
  }
  return out;
}

PassCost pass_cost(Seconds compute, Seconds tensor, Seconds context, Seconds expert) {
  PassCost cost;
  cost.compute = compute;
  cost.tensor_parallel = tensor;
  cost.context_parallel = context;
  cost.expert_parallel = expert;
  return cost;
}

PassCost recompute_cost(Seconds time) {
  PassCost cost;
  cost.recompute = time;
  return cost;
}

// A layer's pass takes at least as long as the host needs to launch it.
void apply_host_floor(PassCost& pass, Seconds host) {
  pass.launch += std::max(Seconds(0), host - pass.total());
}

// The part of an exchange's exposed time that belongs to `some` of its whole time `all`.
Seconds part_of(Seconds shown, Seconds some, Seconds all) {
  return all > Seconds(0) ? shown * (some / all) : Seconds(0);
}

// Forward time that backward repeats under full recomputation, which keeps only a layer's input.
Seconds fully_recomputed(const Stack& stack, const KernelTimes& kernels,
                         const LayerTraffic& traffic, const PassCost& forward) {
  if (!stack.recompute_stops_early) return forward.total();
  return forward.total() - kernels.after_last_saved -
         part_of(forward.tensor_parallel, traffic.tensor_after_last_saved,
                 traffic.tensor_parallel.forward) -
         part_of(forward.expert_parallel, traffic.expert_after_last_saved,
                 traffic.expert_parallel.forward);
}

PassCost selective_cost(const Stack& stack, const KernelTimes& kernels, const LayerTraffic& traffic,
                        const PassCost& forward) {
  switch (stack.selective) {
    case SelectiveRecompute::core_attention:
      return recompute_cost(kernels.recomputed_core);
    case SelectiveRecompute::every_second_matmul:  // with the gathers before the GEMMs
      return recompute_cost(kernels.every_second_matmul + part_of(forward.tensor_parallel,
                                                                  traffic.gathered,
                                                                  traffic.tensor_parallel.forward));
    case SelectiveRecompute::half_of_layers:
      break;
  }
  return recompute_cost(fully_recomputed(stack, kernels, traffic, forward) / 2);
}

Bytes selective_saved(const Stack& stack, const KernelTimes& kernels, Bytes input) {
  switch (stack.selective) {
    case SelectiveRecompute::core_attention:
      return kernels.saved_outside_core;
    case SelectiveRecompute::every_second_matmul:
      return input + kernels.saved_by_every_second;
    case SelectiveRecompute::half_of_layers:
      break;
  }
  return (kernels.saved + input) / 2;
}

KernelTimes kernels_of(const PreparedJob& job, const LayerShard& shard, TimedUnit unit,
                       const KernelTimeTable* table) {
  return table == nullptr ? kernel_times(job, shard, unit) : table->times(shard, unit);
}

// Exposed part of the second gather. In a whole backward pass the reduce-scatter of the input
// gradient follows on the same links, so the gather can also run beside it as far as it leaves them
// free (`scatter`).
SecondGather shown_gather(Seconds gather, GatherCover beside, Seconds scatter) {
  return {std::max(Seconds(0), gather - beside.whole - scatter),
          std::max(Seconds(0), gather - beside.split)};
}

SecondGather second_gather(const Stack& stack, const Plan& plan, const LayerTraffic& traffic,
                           const KernelTimes& kernels) {
  if (traffic.gathered_again + traffic.mtp_gathered_again <= Seconds(0)) return {};
  const Seconds scatter = traffic.scatter_free * shown_of_tensor_parallel(stack, plan);
  SecondGather shown = shown_gather(traffic.gathered_again, kernels.attention_cover, scatter);
  const auto add = [&shown](SecondGather other) {
    shown.whole += other.whole;
    shown.split += other.split;
  };
  if (traffic.mtp_gathered_again > Seconds(0)) {
    add(shown_gather(traffic.mtp_gathered_again, kernels.mtp_cover, 2 * scatter));
  }
  // Routed experts gather nothing.
  if (kernels.mlp_cover.whole > Seconds(0)) {
    add(shown_gather(traffic.gathered_again, kernels.mlp_cover, scatter));
  }
  return shown;
}

LayerCost end_cost(const KernelTimes& kernels, PassTraffic traffic) {
  LayerCost cost;
  cost.forward = pass_cost(kernels.all.forward, traffic.forward, Seconds(0), Seconds(0));
  cost.input_gradient =
      pass_cost(kernels.all.input_gradient, traffic.backward, Seconds(0), Seconds(0));
  cost.weight_gradient.compute = kernels.all.weight_gradient;
  cost.saved = {kernels.saved, kernels.saved, kernels.saved, kernels.saved};
  return cost;
}

}  // namespace

PassCost& PassCost::add(const PassCost& other, double times) {
  compute += other.compute * times;
  recompute += other.recompute * times;
  tensor_parallel += other.tensor_parallel * times;
  context_parallel += other.context_parallel * times;
  expert_parallel += other.expert_parallel * times;
  launch += other.launch * times;
  ring_hidden += other.ring_hidden * times;
  ring_spare += other.ring_spare * times;
  return *this;
}

namespace {

LayerCost layer_cost(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     const TensorTraffic& tensor, LayerKind kind, const KernelTimeTable* table) {
  const Training& training = job.job.training;
  const LayerShard shard = layer_shard(plan);
  const KernelTimes kernels = kernels_of(job, shard, {.kind = index_of(kind)}, table);
  const LayerTraffic whole = layer_traffic(job, plan, links, tensor, kind);
  const ExposedTraffic traffic = exposed_traffic(job, plan, whole, kernels);

  LayerCost cost;
  cost.forward = pass_cost(kernels.all.forward, traffic.tensor.forward, traffic.context.forward,
                           traffic.expert.forward);
  cost.input_gradient = pass_cost(kernels.all.input_gradient, traffic.tensor.backward,
                                  traffic.context.backward, traffic.expert.backward);
  cost.weight_gradient.compute = kernels.all.weight_gradient;

  if (hides_ring(plan, whole)) {
    add_hidden_ring(ring_of(whole.context_parallel, kernels, whole.context_steps,
                            training.stack.overlap_slowdown),
                    cost);
  }

  const Seconds host =
      kind.moe ? training.stack.host_moe_layer_forward : training.stack.host_layer_forward;
  apply_host_floor(cost.forward, host);
  const Seconds backward_host = host * training.stack.host_backward;
  apply_host_floor(cost.input_gradient, backward_host - cost.weight_gradient.total());

  if (kind.moe) {
    const auto others = [](const PassCost& pass) {
      return pass.tensor_parallel + pass.context_parallel + pass.expert_parallel / 2;
    };
    cost.before_experts = kernels.before_experts + others(cost.forward);
    cost.before_experts_backward =
        kernels.shared_experts_backward + cost.input_gradient.expert_parallel / 2;
  }

  cost.second_gather = second_gather(training.stack, plan, whole, kernels);
  cost.full_recompute =
      recompute_cost(fully_recomputed(training.stack, kernels, whole, cost.forward));
  cost.selective_recompute = selective_cost(training.stack, kernels, whole, cost.forward);
  const double inputs = kind.mtp ? 2 : 1;
  const Bytes input = inputs * layer_input_bytes(job.job.model, training, shard);
  cost.saved = {kernels.saved, selective_saved(training.stack, kernels, input), input,
                kernels.between_halves};
  cost.gradients = kernels.gradients;
  return cost;
}

LayerCost embedding_cost(const PreparedJob& job, const Plan& plan, const TensorTraffic& tensor,
                         const KernelTimeTable* table) {
  return end_cost(kernels_of(job, layer_shard(plan), {TimedUnit::End::embedding}, table),
                  embedding_traffic(plan, tensor));
}

void add(const LayerCost& other, double times, LayerCost& cost) {
  cost.forward.add(other.forward, times);
  cost.input_gradient.add(other.input_gradient, times);
  cost.weight_gradient.add(other.weight_gradient, times);
  cost.second_gather.whole += other.second_gather.whole * times;
  cost.second_gather.split += other.second_gather.split * times;
  const Bytes saved = cost.saved.everything + other.saved.everything * times;
  cost.saved = {saved, saved, saved, saved};
}

// Every MTP layer adds the head once more, and the embedding of its second input.
LayerCost head_cost(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                    const TensorTraffic& tensor, const KernelTimeTable* table) {
  const KernelTimes kernels = kernels_of(job, layer_shard(plan), {TimedUnit::End::head}, table);
  const LayerTraffic traffic = head_traffic(job, plan, links, tensor);
  LayerCost cost = end_cost(kernels, traffic.tensor_parallel);
  cost.second_gather =
      shown_gather(traffic.gathered_again, kernels.mlp_cover, traffic.scatter_free);
  if (const int more = job.job.model.mtp_layers; more > 0) {
    add(LayerCost(cost), more, cost);
    add(embedding_cost(job, plan, tensor, table), more, cost);
  }
  apply_host_floor(cost.forward, job.job.training.stack.host_microbatch);
  return cost;
}

}  // namespace

LayerCost layer_cost(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                     LayerKind kind) {
  return layer_cost(job, plan, links, tensor_traffic(job, plan, links), kind, nullptr);
}

LayerCost head_cost(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  return head_cost(job, plan, links, tensor_traffic(job, plan, links), nullptr);
}

StageCosts stage_costs(const PreparedJob& job, const Plan& plan, const PlanLinks& links) {
  return stage_costs(job, plan, links, tensor_traffic(job, plan, links), nullptr);
}

StageCosts stage_costs(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                       const TensorTraffic& tensor, const KernelTimeTable* table) {
  StageCosts costs;
  const LayerCounts all = job.all_layers();
  for (std::size_t kind = 0; kind < all.size(); ++kind) {
    if (all[kind] == 0) continue;
    const LayerKind of = layer_kind_at(job.job.model, static_cast<int>(kind));
    costs.layers[kind] = layer_cost(job, plan, links, tensor, of, table);
  }
  costs.embedding = embedding_cost(job, plan, tensor, table);
  costs.head = head_cost(job, plan, links, tensor, table);
  return costs;
}

void add_second_gather(const Plan& plan, const SecondGather& gather, PassCost& input_gradient,
                       PassCost& weight_gradient) {
  const bool split = splits_backward(*plan.schedule, plan.pipeline_parallel);
  // Where micro-batches go both ways, only a few of the passes are split.
  if (split && plan.schedule->route != Route::both_ways) {
    weight_gradient.tensor_parallel += gather.split;
    return;
  }
  input_gradient.tensor_parallel += gather.whole;
  input_gradient.launch = std::max(Seconds(0), input_gradient.launch - gather.whole);
}

void add_second_gather(const Plan& plan, LayerCost& cost) {
  add_second_gather(plan, cost.second_gather, cost.input_gradient, cost.weight_gradient);
}

void add_second_gathers(const Plan& plan, StageCosts& costs) {
  for (LayerCost& layer : costs.layers) add_second_gather(plan, layer);
  add_second_gather(plan, costs.head);
}

}  // namespace trainyard
