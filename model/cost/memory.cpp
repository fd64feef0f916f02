#include "model/cost/memory.h"

#include <algorithm>

#include "model/cost/data_parallel.h"
#include "model/workload/operators.h"

namespace trainyard {
namespace {

constexpr Bytes kGemmWorkspace(64.0 * 1024 * 1024);  // cuBLAS on Hopper, per stream set

bool on_device(OffloadTarget target) { return target == OffloadTarget::none; }

MemoryByKind sharded_states(const Training& training, const Plan& plan, double parameters,
                            ShardDivisors by) {
  const PrecisionRecipe& precision = training.precision;
  const double weights = keeps_weights(training, plan) ? precision.weight_bytes : 0;
  const double states = precision.master_weight_bytes + training.optimizer.moment_bytes;
  MemoryByKind memory;
  if (on_device(plan.offload.parameters)) {
    memory.parameters = Bytes(parameters * weights / by.parameters);
  }
  if (on_device(plan.offload.gradients)) {
    memory.gradients = Bytes(parameters * training.stack.gradient_bytes / by.gradients);
  }
  if (on_device(plan.offload.optimizer))
    memory.optimizer = Bytes(parameters * states / by.optimizer);
  return memory;
}

Bytes largest_layer(const StageCosts& costs, const StageParameters& stage) {
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    if (stage.kinds[kind] > 0) largest = std::max(largest, costs.layers[kind].saved.everything);
  }
  return largest;
}

// The most that a layer has for the first half of its backward pass only.
Bytes largest_core(const StageCosts& costs, const StageParameters& stage) {
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const SavedBytes& saved = costs.layers[kind].saved;
    if (stage.kinds[kind] > 0) largest = std::max(largest, saved.everything - saved.between_halves);
  }
  return largest;
}

Bytes largest_gradients(const StageCosts& costs, const StageParameters& stage) {
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    if (stage.kinds[kind] > 0) largest = std::max(largest, costs.layers[kind].gradients);
  }
  return largest;
}

Bytes logit_bytes(const PreparedJob& job, const Plan& plan) {
  const auto vocabulary = padded_vocabulary(job.job.model.vocabulary, plan.tensor_parallel);
  return Bytes(tokens_per_rank(job, plan) * static_cast<double>(vocabulary) / plan.tensor_parallel *
               job.job.training.stack.saved_logit_bytes);
}

bool repeats(Recompute recompute) {
  return recompute.mode == RecomputeMode::full || recompute.mode == RecomputeMode::selective;
}

// The most that a layer's backward pass makes again.
Bytes largest_repeated(const StageCosts& costs, const StageParameters& stage, Recompute recompute) {
  if (recompute.mode == RecomputeMode::full) return largest_layer(costs, stage);
  Bytes largest;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    const SavedBytes& saved = costs.layers[kind].saved;
    if (stage.kinds[kind] > 0) largest = std::max(largest, saved.everything - saved.selective);
  }
  return largest;
}

// What a micro-batch has on the device between the halves of its backward pass and not before:
// activations that were repeated or fetched for the first half stay for the second.
Bytes back_between_halves(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                          int index) {
  const Recompute recompute = recompute_of(plan, index);
  const bool fetched = !on_device(plan.offload.activations);
  if (!repeats(recompute) && !fetched) return Bytes(0);
  Bytes stays;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    stays += stage.kinds[kind] * costs.layers[kind].saved.between_halves;
  }
  if (fetched) {
    const double away = offloaded_share(plan.offload, stage.layers);
    const Bytes here = (1 - away) * saved_by_stage(costs, stage, recompute);
    return std::max(Bytes(0), stays - here);
  }
  if (recompute.mode == RecomputeMode::selective) {
    return std::max(Bytes(0), stays - saved_by_stage(costs, stage, recompute));
  }
  const Bytes inputs = saved_by_stage(costs, stage, {RecomputeMode::full, 0});
  return full_recompute_share(recompute, stage.layers) * (stays - inputs);
}

Bytes activation_bytes(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                       int index) {
  const PipelineShape shape = pipeline_shape(plan);
  const int held = chunks_held(shape);
  const double in_flight =
      static_cast<double>(plan.schedule->chunks_in_flight(shape, index)) / held;
  Bytes kept = saved_by_stage(costs, stage, recompute_of(plan, index)) * in_flight;
  if (stage.embedding) kept += costs.embedding.saved.everything * in_flight;
  if (!on_device(plan.offload.activations)) {
    // Two layers stay: the one at work and the one on its way.
    const double away = offloaded_share(plan.offload, stage.layers);
    kept = std::min(kept, kept * (1 - away) + 2 * largest_layer(costs, stage));
  }
  const int between = plan.schedule->chunks_between_halves(shape, index);
  if (between > 1) {  // but for the one at work (`add_transients`)
    kept += back_between_halves(plan, costs, stage, index) * ((between - 1.0) / held);
  }
  if (stage.head) kept += costs.head.saved.everything * microbatches_at_head(plan);
  return kept;
}

// While a layer's backward pass runs, or a chunk's where its halves are apart.
Bytes back_at_work(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                   int index) {
  const Recompute recompute = recompute_of(plan, index);
  const bool again = repeats(recompute);
  const Bytes layer = again ? largest_repeated(costs, stage, recompute) : Bytes(0);
  const PipelineShape shape = pipeline_shape(plan);
  if (plan.schedule->chunks_between_halves(shape, index) == 0) return layer;
  // The layer at work has everything of itself.
  const Bytes more = again ? largest_core(costs, stage) : Bytes(0);
  return std::max(layer,
                  back_between_halves(plan, costs, stage, index) / chunks_held(shape) + more);
}

// A micro-batch's logits and a layer's backward pass (its gradients, its activations where they are
// recomputed or fetched) are never alive together: the peak has the larger of the two.
void add_transients(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                    const StageParameters& stage, int index, StageMemory& memory) {
  const Bytes logits = stage.head ? logit_bytes(job, plan) : Bytes(0);
  const Bytes recomputed = back_at_work(plan, costs, stage, index);
  const Bytes gradients = largest_gradients(costs, stage);
  if (logits > recomputed + gradients) {
    memory.at_peak.logits = logits;
    memory.moment = MemoryMoment::output_head;
  } else {
    memory.at_peak.recomputation = recomputed;
    memory.at_peak.buffers += gradients;
  }
  if (stage.head) memory.at_peak.logits += logits * (microbatches_at_head(plan) - 1);
}

void add_buffers(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                 MemoryByKind& memory) {
  const Training& training = job.job.training;
  memory.buffers = kGemmWorkspace;
  const bool sharded = dense_divisors(plan).parameters > 1 ||
                       (stage.experts > 0 && expert_divisors(plan).parameters > 1);
  if (sharded) {
    // The layer at work and the prefetched one, gathered; one layer's whole gradient before it is
    // scattered.
    memory.buffers += Bytes(stage.largest_layer *
                            (2 * training.precision.weight_bytes + training.stack.reduction_bytes));
  }
}

}  // namespace

int microbatches_at_head(const Plan& plan) {
  const PipelineShape shape = pipeline_shape(plan);
  const bool turns_at_once = chunks_held(shape) > 1 || plan.schedule->splits_backward;
  return turns_at_once ? 1 : plan.schedule->chunks_in_flight(shape, shape.stages - 1);
}

bool keeps_weights(const Training& training, const Plan& plan) {
  return training.stack.keeps_weight_copy || training.precision.master_weight_bytes == 0 ||
         plan.zero_stage < 3;
}

Bytes saved_by_stage(const StageCosts& costs, const StageParameters& stage, Recompute recompute) {
  Bytes everything, selective, input;
  for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind) {
    if (stage.kinds[kind] == 0) continue;
    const SavedBytes& saved = costs.layers[kind].saved;
    everything += saved.everything * stage.kinds[kind];
    selective += saved.selective * stage.kinds[kind];
    input += saved.input_only * stage.kinds[kind];
  }
  switch (recompute.mode) {
    case RecomputeMode::none:
    case RecomputeMode::automatic:
      return everything;
    case RecomputeMode::selective:
      return selective;
    case RecomputeMode::full:
      break;
  }
  const double share = full_recompute_share(recompute, stage.layers);
  return input * share + everything * (1 - share);
}

double offloaded_share(const Offload& offload, int layers) {
  if (offload.activations == OffloadTarget::none) return 0;
  if (offload.activation_layers == 0 || layers == 0) return 1;
  return std::min(1.0, static_cast<double>(offload.activation_layers) / layers);
}

double full_recompute_share(Recompute recompute, int layers) {
  if (recompute.mode != RecomputeMode::full) return 0;
  if (recompute.full_layers == 0 || layers == 0) return 1;
  return std::min(1.0, static_cast<double>(recompute.full_layers) / layers);
}

MemoryByKind state_memory(const Training& training, const Plan& plan,
                          const StageParameters& stage) {
  MemoryByKind memory = sharded_states(training, plan, stage.dense, dense_divisors(plan));
  const MemoryByKind experts = sharded_states(training, plan, stage.experts, expert_divisors(plan));
  memory.parameters += experts.parameters;
  memory.gradients += experts.gradients;
  memory.optimizer += experts.optimizer;
  return memory;
}

StageMemory stage_memory(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                         const StageParameters& stage, int index) {
  StageMemory out;
  MemoryByKind& memory = out.at_peak;
  memory = state_memory(job.job.training, plan, stage);
  add_buffers(job, plan, stage, memory);
  add_transients(job, plan, costs, stage, index, out);
  memory.runtime = job.job.training.stack.runtime_memory;
  fill_activations(job, plan, costs, stage, index, memory);
  return out;
}

void fill_activations(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                      const StageParameters& stage, int index, MemoryByKind& memory) {
  memory.activations = activation_bytes(plan, costs, stage, index);
  memory.fragmentation = memory.allocated() * job.job.training.stack.fragmentation;
}

}  // namespace trainyard
