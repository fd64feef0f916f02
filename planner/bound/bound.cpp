#include "planner/bound/bound.h"

#include <algorithm>
#include <limits>

namespace trainyard {
namespace {

// Bytes of weights, gradients and optimizer states that the devices hold for one parameter, without
// what `offload` moves off them.
double bytes_per_parameter(const Training& training, const Offload& offload) {
  const auto here = [](OffloadTarget target, double bytes) {
    return target == OffloadTarget::none ? bytes : 0.0;
  };
  const double weights = training.stack.keeps_weight_copy ? training.precision.weight_bytes : 0;
  const double optimizer = training.precision.master_weight_bytes + training.optimizer.moment_bytes;
  return here(offload.parameters, weights) +
         here(offload.gradients, kept_gradient_bytes(training)) +
         here(offload.optimizer, optimizer);
}

}  // namespace

ParameterShares parameter_shares(const PreparedJob& job) {
  ParameterShares shares;
  const LayerCounts layers = job.all_layers();
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    shares.experts += layers[kind] * job.layer_parameters[kind].experts;
  }
  shares.dense = job.parameters - shares.experts;
  return shares;
}

double objective_bound(const PreparedJob& job, const ParameterShares& shares, Objective objective,
                       const Offload& offload, double computed) {
  const Job& j = job.job;
  const int devices = j.cluster.devices();
  FlopsPerSecond peak;
  for (const FlopsPerSecond rate : j.cluster.device.peak) {
    peak = std::max(peak, rate);
  }
  const Flops sequence = job.flop.layers - 0.5 * job.flop.attention_core + job.flop.head;
  const double sequences = computed * static_cast<double>(j.training.global_batch);
  const Seconds step = 3 * sequences * sequence / (peak * devices);
  switch (objective) {
    case Objective::step_time:
    case Objective::goodput:
      return step.value();
    case Objective::cost:
      return j.cluster.device.price ? (step * *j.cluster.device.price * devices).value() : 0;
    case Objective::memory:
      return (shares.dense + shares.experts) / devices * bytes_per_parameter(j.training, offload);
    case Objective::energy:
      return 0;
  }
  return 0;
}

double objective_bound(const PreparedJob& job, const ParameterShares& shares, Objective objective,
                       const std::vector<SearchedOffload>& offloads, double computed) {
  double least = std::numeric_limits<double>::infinity();
  for (const SearchedOffload& searched : offloads) {
    least = std::min(least, objective_bound(job, shares, objective, searched.offload, computed));
  }
  return least;
}

}  // namespace trainyard
