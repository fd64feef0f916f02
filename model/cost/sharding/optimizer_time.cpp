#include "model/cost/memory/offload.h"
#include "model/cost/sharding/data_parallel.h"
#include "model/workload/optimizer_flop.h"

namespace trainyard {
namespace {

// Bytes of the optimizer step for each parameter: those of the update, and one more read of the
// gradient for its norm. Clipping is part of the update.
double step_bytes(const Training& training, UpdatedPart part) {
  const double gradient = kept_gradient_bytes(training);
  return gradient + update_bytes(training.optimizer, part, training.precision, gradient);
}

Bytes step_bytes(const Training& training, const Plan& plan, const StageParameters& stage) {
  const double sharded = dense_divisors(plan).optimizer;
  const double in_layers =
      (stage.dense - stage.of_ends()) / sharded + stage.experts / expert_divisors(plan).optimizer;
  return Bytes(in_layers * step_bytes(training, UpdatedPart::layer) +
               stage.of_ends() / sharded * step_bytes(training, UpdatedPart::end_of_network));
}

// Sum over the stage's layers.
Seconds orthogonalisation_time(const PreparedJob& job, const Plan& plan,
                               const StageParameters& stage) {
  Seconds time;
  if (job.job.training.optimizer.orthogonalisation_steps == 0) return time;
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const int layers = stage.kinds[static_cast<std::size_t>(kind)];
    if (layers == 0) continue;
    const OrthogonalisationTime each =
        orthogonalisation_time(job.job, plan, layer_kind_at(job.job.model, kind));
    time += layers * (each.dense + each.experts);
  }
  return time;
}

}  // namespace

OrthogonalisationTime orthogonalisation_time(const Job& job, const Plan& plan, LayerKind kind) {
  const double dense_ranks = plan.tensor_parallel * dense_divisors(plan).optimizer;
  const double expert_ranks =
      plan.expert_parallel * plan.expert_tensor_parallel * expert_divisors(plan).optimizer;
  const UpdateFlop flop = update_flop(job.training.optimizer, job.model, kind);
  const Device& device = job.cluster.device;
  const FlopsPerSecond rate = device.rates.of(job.training.precision.head_gemm).per_multiprocessor *
                              (device.multiprocessors * device.rates.sustained_clock);
  return {Flops(flop.dense / dense_ranks) / rate, Flops(flop.experts / expert_ranks) / rate};
}

Seconds serial_update_time(const Stack& stack, const Plan& plan) {
  if (plan.zero_stage != 1 || plan.sharding_group == 1) return Seconds(0);
  return stack.sharded_update_per_rank * plan.sharding_group;
}

Seconds optimizer_time(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  const Device& device = job.job.cluster.device;
  const bool on_host = plan.offload.optimizer != OffloadTarget::none;
  const BytesPerSecond rate = on_host ? update_bandwidth(job.job.cluster, plan.offload.optimizer)
                                      : device.memory_bandwidth * device.rates.memory;
  Seconds time = step_bytes(job.job.training, plan, stage) / rate;
  if (plan.offload != Offload{}) time += optimizer_crossing(job, plan, stage);
  return time + orthogonalisation_time(job, plan, stage) +
         serial_update_time(job.job.training.stack, plan);
}

}  // namespace trainyard
