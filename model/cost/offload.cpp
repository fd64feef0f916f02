#include "model/cost/offload.h"

#include <algorithm>

#include "model/cost/data_parallel.h"

namespace trainyard {
namespace {

bool away(OffloadTarget target) { return target != OffloadTarget::none; }

BytesPerSecond bandwidth_to(const Cluster& cluster, OffloadTarget target) {
  const BytesPerSecond host = cluster.device.host_bandwidth;
  if (target != OffloadTarget::nvme) return host;
  return std::min(host, cluster.nvme_bandwidth / static_cast<double>(cluster.devices_per_node));
}

// The weights that a pass reads: the copy kept for it, else the optimizer's own.
Seconds fetch_time(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  const Training& training = job.job.training;
  const bool copy = keeps_weights(training, plan);
  const OffloadTarget target = copy ? plan.offload.parameters : plan.offload.optimizer;
  if (!away(target)) return Seconds(0);
  const PrecisionRecipe& precision = training.precision;
  const double bytes = copy ? precision.weight_bytes : precision.master_weight_bytes;
  const double parameters = stage.dense / dense_divisors(plan).parameters +
                            stage.experts / expert_divisors(plan).parameters;
  return Bytes(parameters * bytes) / bandwidth_to(job.job.cluster, target);
}

Seconds gradient_time(const PreparedJob& job, const Plan& plan, const StageParameters& stage) {
  if (!away(plan.offload.gradients)) return Seconds(0);
  const double gradients = stage.dense / dense_divisors(plan).gradients +
                           stage.experts / expert_divisors(plan).gradients;
  return Bytes(gradients * job.job.training.stack.gradient_bytes) /
         bandwidth_to(job.job.cluster, plan.offload.gradients);
}

}  // namespace

Bytes activations_sent_away(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                            Recompute recompute) {
  if (!away(plan.offload.activations)) return Bytes(0);
  return saved_by_stage(costs, stage, recompute) * offloaded_share(plan.offload, stage.layers);
}

PassTimes offload_copies(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                         Bytes activations) {
  const Seconds weights = fetch_time(job, plan, stage);
  const Seconds kept = away(plan.offload.activations)
                           ? activations / bandwidth_to(job.job.cluster, plan.offload.activations)
                           : Seconds(0);
  PassTimes copies;
  copies.forward = std::max(weights, kept);
  copies.input_gradient = weights + kept;
  copies.weight_gradient = gradient_time(job, plan, stage);
  return copies;
}

PassTimes exposed_copies(const PassTimes& copies, const PassTimes& passes) {
  const auto longer = [](Seconds copy, Seconds pass) { return std::max(Seconds(0), copy - pass); };
  PassTimes exposed;
  exposed.forward = longer(copies.forward, passes.forward);
  exposed.input_gradient = longer(copies.input_gradient, passes.input_gradient);
  exposed.weight_gradient = longer(copies.weight_gradient, passes.weight_gradient);
  return exposed;
}

Bytes optimizer_crossing(const Training& training, const Plan& plan) {
  const bool on_host = away(plan.offload.optimizer);
  double bytes = 0;
  if (away(plan.offload.gradients) != on_host) bytes += training.stack.gradient_bytes;
  if (keeps_weights(training, plan) && away(plan.offload.parameters) != on_host) {
    bytes += training.precision.weight_bytes;
  }
  return Bytes(bytes);
}

}  // namespace trainyard
