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

Seconds longer(Seconds copy, Seconds pass) { return std::max(Seconds(0), copy - pass); }

// Of a stage whose forward and backward passes take turns, beside its layers alone: two layers'
// activations leave, and the first one comes back, beside what follows and comes before. Where
// backward follows forward those are the ends, and what they do not cover shows.
struct ShownInTurn {
  Seconds away, back;
};
ShownInTurn shown_in_turn(const OffloadCopies& copies, double share, const PassTimes& layers,
                          Seconds ends) {
  const Seconds gone = share * copies.activations;
  const Seconds gradients =
      copies.halves_apart ? Seconds(0) : share * copies.beside.weight_gradient;
  const Seconds back = share * copies.beside.input_gradient + gradients;
  const Seconds cover = copies.halves_apart ? layers.input_gradient : layers.backward();
  ShownInTurn shown;
  shown.away = std::max(0.0, copies.layers - 2) / copies.layers * longer(gone, layers.forward);
  shown.back = (copies.layers - 1) / copies.layers * longer(back, cover);
  if (copies.turns) {
    const double each = 1 / (copies.layers * copies.chunks);
    const Seconds one = each * gone;
    shown.back += longer(std::max(2 * one, 3 * one - each * layers.forward), ends);
  }
  return shown;
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
  const PipelineShape shape = pipeline_shape(plan);
  const int in_flight = plan.schedule->chunks_in_flight(shape, 0);
  copies.in_a_row = plan.microbatches > 1 && in_flight >= plan.microbatches * shape.chunks;
  copies.halves_apart = splits_backward(*plan.schedule, plan.pipeline_parallel);
  copies.chunks = shape.chunks;
  copies.layers = std::max(1.0, static_cast<double>(stage.layers) / chunks_held(shape));
  copies.turns = stage.head;
  return copies;
}

PassTimes exposed_copies(const OffloadCopies& copies, double share, const PassTimes& passes,
                         const PassTimes& ends) {
  const PassTimes& beside = copies.beside;
  PassTimes exposed;
  exposed.forward = longer(share * copies.weights, passes.forward);
  exposed.input_gradient = longer(share * copies.weights, passes.input_gradient);
  exposed.weight_gradient = longer(share * beside.weight_gradient, passes.weight_gradient);
  if (copies.activations <= Seconds(0)) return exposed;
  const Seconds gone = share * copies.activations;
  if (copies.in_a_row) {
    const Seconds gradients = copies.halves_apart ? Seconds(0) : share * beside.weight_gradient;
    const Seconds cover = copies.halves_apart ? passes.input_gradient : passes.backward();
    const Seconds back = longer(share * beside.input_gradient + gradients, cover);
    exposed.forward = std::max(exposed.forward, longer(gone, passes.forward));
    exposed.input_gradient = std::max(exposed.input_gradient, back - exposed.weight_gradient);
    return exposed;
  }
  const PassTimes layers{passes.forward - ends.forward, passes.input_gradient - ends.input_gradient,
                         passes.weight_gradient - ends.weight_gradient};
  const ShownInTurn shown = shown_in_turn(copies, share, layers, ends.total());
  exposed.input_gradient = std::max(exposed.input_gradient, shown.back - exposed.weight_gradient);
  const Seconds backward = exposed.input_gradient + exposed.weight_gradient;
  // Each way takes as long as it takes.
  const Seconds in = share * (2 * copies.weights + copies.activations + beside.weight_gradient);
  exposed.forward =
      std::max({exposed.forward, shown.away, longer(in, passes.total()) - backward,
                longer(gone + share * beside.weight_gradient, passes.total()) - backward});
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
