#include "model/cost/data_parallel.h"
#include "model/cost/offload.h"
#include "model/workload/optimizer_flop.h"

namespace trainyard {
namespace {

// Traffic of the step, a parameter: the norm reads the gradient once more than the update; clipping
// is folded into the update.
double step_bytes(const Training& training) {
  const double gradient = training.stack.gradient_bytes;
  return gradient + update_bytes(training.optimizer, training.precision, gradient);
}

// Newton–Schulz iterations on whole matrices, shared out among the ranks that hold a part of them
// (Liu et al. 2025, Distributed Muon); the gathering of the matrices is not counted.
Seconds orthogonalisation_time(const PreparedJob& job, const Plan& plan,
                               const StageParameters& stage) {
  const Training& training = job.job.training;
  if (training.optimizer.orthogonalisation_steps == 0) return Seconds(0);
  const double dense_ranks = plan.tensor_parallel * dense_divisors(plan).optimizer;
  const double expert_ranks =
      plan.expert_parallel * plan.expert_tensor_parallel * expert_divisors(plan).optimizer;
  Flops flop;
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const int layers = stage.kinds[static_cast<std::size_t>(kind)];
    if (layers == 0) continue;
    const Transformer& model = job.job.model;
    const UpdateFlop each = update_flop(training.optimizer, model, layer_kind_at(model, kind));
    flop += Flops(layers * (each.dense / dense_ranks + each.experts / expert_ranks));
  }
  const Device& device = job.job.cluster.device;
  return flop / (device.rates.of(training.precision.head_gemm).per_multiprocessor *
                 (device.multiprocessors * device.rates.sustained_clock));
}

Seconds host_update_time(const PreparedJob& job, const Plan& plan, double parameters) {
  return Bytes(parameters * step_bytes(job.job.training)) /
         update_bandwidth(job.job.cluster, plan.offload.optimizer);
}

}  // namespace

Seconds optimizer_time(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  const double parameters = stage.dense / dense_divisors(plan).optimizer +
                            stage.experts / expert_divisors(plan).optimizer;
  Seconds time;
  if (plan.offload.optimizer != OffloadTarget::none) {
    time = host_update_time(job, plan, parameters);
  } else {
    const Device& device = job.job.cluster.device;
    time = Bytes(parameters * step_bytes(job.job.training)) /
           (device.memory_bandwidth * device.rates.memory);
  }
  if (plan.offload != Offload{}) time += optimizer_crossing(job, plan, stage);
  time += orthogonalisation_time(job, plan, stage);
  if (plan.zero_stage == 1 && plan.sharding_group > 1) {
    time += job.job.training.stack.sharded_update_per_rank * plan.sharding_group;
  }
  return time;
}

}  // namespace trainyard
