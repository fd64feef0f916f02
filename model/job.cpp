#include "model/job.h"

#include <cassert>
#include <utility>

#include "model/cluster/topology_graph.h"

namespace trainyard {
namespace {

std::vector<LayerCounts> count_layers_before(const Transformer& model) {
  std::vector<LayerCounts> before(static_cast<std::size_t>(model.layers) + 1, LayerCounts{});
  for (int layer = 0; layer < model.layers; ++layer) {
    auto counts = before[static_cast<std::size_t>(layer)];
    ++counts[static_cast<std::size_t>(index_of(layer_kind(model, layer)))];
    before[static_cast<std::size_t>(layer) + 1] = counts;
  }
  return before;
}

std::optional<LayerKind> only_kind(const LayerCounts& counts, const Transformer& model) {
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] == model.layers) return layer_kind_at(model, static_cast<int>(kind));
  }
  return std::nullopt;
}

void fill_repeated_flop(PreparedJob& prepared) {
  const Job& job = prepared.job;
  const LayerCounts layers = prepared.all_layers();
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    if (layers[kind] == 0) continue;
    prepared.repeated_flop[kind] =
        repeated_flop(job.model, job.training, layer_kind_at(job.model, static_cast<int>(kind)));
  }
}

}  // namespace

Stack at_release(Stack stack, const Job& job) {
  const Training& training = job.training;
  const auto& generation = job.cluster.device.generation;
  Stack released =
      at_release(std::move(stack), {.release = training.release,
                                    .precision = training.precision.name,
                                    .generation = generation ? name_of(*generation) : "",
                                    .latent_attention = job.model.latent_attention.has_value()});
  const auto& measured = job.cluster.device.overlap_slowdown;
  if (measured) released.overlap_slowdown = *measured;
  return released;
}

LayerCounts PreparedJob::all_layers() const {
  LayerCounts counts = layers_before.back();
  counts[kMtpKind] = job.model.mtp_layers;
  return counts;
}

LayerCounts PreparedJob::layers_between(int first, int count) const {
  assert(first >= 0 && count >= 0 && first + count <= job.model.layers);
  const auto& before = layers_before[static_cast<std::size_t>(first)];
  auto counts = layers_before[static_cast<std::size_t>(first + count)];
  for (std::size_t kind = 0; kind < counts.size(); ++kind) counts[kind] -= before[kind];
  return counts;
}

PreparedJob prepare(Job job) {
  auto topology = std::make_shared<LazyTopology>(job.cluster);
  FabricTiers tiers = is_routed(job.cluster.inter) ? fabric_tiers(job.cluster, *topology->graph())
                                                   : fabric_tiers(job.cluster);
  PreparedJob prepared = prepare(std::move(job), std::move(tiers));
  prepared.topology = std::move(topology);
  return prepared;
}

PreparedJob prepare(Job job, FabricTiers tiers) {
  PreparedJob prepared;
  prepared.tiers = std::move(tiers);
  job.training.stack = at_release(std::move(job.training.stack), job);
  prepared.layers_before = count_layers_before(job.model);
  prepared.only_kind = only_kind(prepared.layers_before.back(), job.model);
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    prepared.layer_parameters[static_cast<std::size_t>(kind)] =
        layer_parameters(job.model, layer_kind_at(job.model, kind));
  }
  const auto sequence_length = job.training.sequence_length;
  prepared.end_parameters = end_parameters(job.model, sequence_length);
  prepared.parameters = parameter_count(job.model, sequence_length);
  prepared.active_parameters = active_parameter_count(job.model, sequence_length);
  prepared.flop = sequence_forward_flop(job.model, job.training);
  prepared.model_flop = model_flop(job.model, job.training);
  prepared.job = std::move(job);
  fill_repeated_flop(prepared);
  return prepared;
}

}  // namespace trainyard
