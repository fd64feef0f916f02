#include "model/cost/offload.h"

#include <algorithm>

#include "model/cost/data_parallel.h"

namespace trainyard {
namespace {

bool away(OffloadTarget target) { return target != OffloadTarget::none; }

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

void set_alone(const Plan& plan, const StageParameters& stage, OffloadCopies& copies) {
  const PipelineShape shape = pipeline_shape(plan);
  const int in_flight = plan.schedule->chunks_in_flight(shape, 0);
  if (shape.stages == 1 || in_flight >= plan.microbatches * shape.chunks) return;
  const double turning = stage.head ? 1.0 / shape.chunks : 0.0;  // chunks where backward is next
  const double layers = std::max(1.0, static_cast<double>(stage.layers) / chunks_held(shape));
  copies.away_alone = turning + (1 - turning) * std::max(0.0, layers - 2) / layers;
  copies.back_alone = turning + (1 - turning) * (layers - 1) / layers;
}

}  // namespace

BytesPerSecond bandwidth_to(const Cluster& cluster, OffloadTarget target) {
  const BytesPerSecond host = cluster.device.host_bandwidth;
  if (target != OffloadTarget::nvme) return host;
  return std::min(host, cluster.nvme_bandwidth / static_cast<double>(cluster.devices_per_node));
}

BytesPerSecond update_bandwidth(const Cluster& cluster, OffloadTarget optimizer) {
  const BytesPerSecond memory =
      optimizer == OffloadTarget::nvme
          ? std::min(cluster.nvme_bandwidth, cluster.host_memory_bandwidth)
          : cluster.host_memory_bandwidth;
  return memory / static_cast<double>(cluster.devices_per_node);
}

Bytes activations_sent_away(const Plan& plan, const StageCosts& costs, const StageParameters& stage,
                            Recompute recompute) {
  if (!away(plan.offload.activations)) return Bytes(0);
  return saved_by_stage(costs, stage, recompute) * offloaded_share(plan.offload, stage.layers);
}

OffloadCopies offload_copies(const PreparedJob& job, const Plan& plan, const StageParameters& stage,
                             Bytes activations) {
  OffloadCopies copies;
  copies.weights = fetch_time(job, plan, stage);
  if (away(plan.offload.activations)) {
    copies.activations = activations / bandwidth_to(job.job.cluster, plan.offload.activations);
  }
  copies.beside.forward = std::max(copies.weights, copies.activations);
  copies.beside.input_gradient = copies.weights + copies.activations;
  copies.beside.weight_gradient = gradient_time(job, plan, stage);
  copies.halves_apart = splits_backward(*plan.schedule, plan.pipeline_parallel);
  set_alone(plan, stage, copies);
  return copies;
}

PassTimes exposed_copies(const OffloadCopies& copies, double share, const PassTimes& passes) {
  const auto longer = [share](Seconds copy, Seconds pass) {
    return std::max(Seconds(0), share * copy - pass);
  };
  const PassTimes& beside = copies.beside;
  PassTimes exposed;
  exposed.weight_gradient = longer(beside.weight_gradient, passes.weight_gradient);
  exposed.input_gradient =
      copies.halves_apart
          ? copies.back_alone * longer(beside.input_gradient, passes.input_gradient)
          : copies.back_alone *
                    longer(beside.input_gradient + beside.weight_gradient, passes.backward()) -
                exposed.weight_gradient;
  exposed.input_gradient =
      std::max(exposed.input_gradient, longer(copies.weights, passes.input_gradient));
  exposed.forward = std::max(longer(copies.weights, passes.forward),
                             copies.away_alone * longer(copies.activations, passes.forward));
  // One way takes as long as it takes.
  const Seconds both = exposed.input_gradient + exposed.weight_gradient;
  exposed.forward = std::max(exposed.forward, longer(copies.activations, passes.total()) - both);
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
