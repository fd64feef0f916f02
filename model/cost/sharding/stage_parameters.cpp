#include "model/cost/sharding/stage_parameters.h"

#include <algorithm>
#include <array>

#include "model/schedule/schedule.h"
#include "model/workload/operators.h"

namespace trainyard {
namespace {

// Dense parameters of one layer on one rank: sharded tensors over t, those of KV heads over
// min(t, g).
double dense_parameters(const LayerParameters& layer, const Plan& plan, int kv_heads) {
  const double t = plan.tensor_parallel;
  const double kv_shards = std::min(t, static_cast<double>(std::max(kv_heads, 1)));
  return (layer.attention_sharded + layer.mlp_sharded + layer.mtp_projection) / t +
         layer.kv_sharded / kv_shards + layer.replicated;
}

double expert_parameters(const LayerParameters& layer, const Plan& plan) {
  return (layer.experts / plan.expert_tensor_parallel + layer.expert_biases) / plan.expert_parallel;
}

double vocabulary_matrix(const PreparedJob& job, const Plan& plan) {
  const auto padded = padded_vocabulary(job.job.model.vocabulary, plan.tensor_parallel);
  return static_cast<double>(padded) * job.job.model.hidden_size / plan.tensor_parallel;
}

// Counts the layers of the stage's chunks. Under Route::both_ways these are two chunks, the second
// a copy of the layers of another stage.
void hold_chunks(const PreparedJob& job, const LayersOfChunks& layers, PipelineShape shape,
                 int stage, StageParameters& out) {
  const int chunks = chunks_held(shape);
  const int last = layer_chunks(shape) - 1;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int position = layer_chunk_of(shape, {stage, chunk});
    out.layers += layers[position];
    if (position == 0) out.embedding = true;
    if (position == last) out.head = true;
    if (job.only_kind) continue;
    const LayerCounts counts = job.layers_between(layers.before(position), layers[position]);
    for (std::size_t kind = 0; kind < counts.size(); ++kind) out.kinds[kind] += counts[kind];
  }
}

// The same where all layers are of one kind and micro-batches go in a loop.
void hold_layers_of_one_kind(const LayersOfChunks& layers, PipelineShape shape, int stage,
                             StageParameters& out) {
  out.embedding = stage == 0;
  out.head = stage + 1 == shape.stages;
  out.layers = layers.of_stage(stage);
}

void hold(const PreparedJob& job, const LayersOfChunks& layers, PipelineShape shape, int stage,
          StageParameters& out) {
  if (job.only_kind && shape.route == Route::loop) {
    hold_layers_of_one_kind(layers, shape, stage, out);
  } else {
    hold_chunks(job, layers, shape, stage, out);
  }
  if (job.only_kind) out.kinds[static_cast<std::size_t>(index_of(*job.only_kind))] = out.layers;
  if (out.head) out.kinds[kMtpKind] = job.job.model.mtp_layers;
  out.layers += out.kinds[kMtpKind];
}

using LayerSizes = std::array<double, kLayerKinds>;  // of one layer of each kind, on a rank

// The two consecutive layers with the most parameters, of `layers` layers from `first` on.
LayersSideBySide side_by_side(const Transformer& model, int first, int layers,
                              const LayerSizes& sizes, double largest) {
  const auto size = [&](int layer) {
    return sizes[static_cast<std::size_t>(index_of(layer_kind(model, layer)))];
  };
  LayersSideBySide most;
  for (int next = first + 1; next < first + layers && most.smaller < largest; ++next) {
    const auto [less, more] = std::minmax({size(next - 1), size(next)});
    if (more + less > most.larger + most.smaller) most = {more, less};
  }
  return most;
}

void set_side_by_side(const PreparedJob& job, const LayersOfChunks& layers, PipelineShape shape,
                      const LayerSizes& sizes, std::vector<StageParameters>& out) {
  const Transformer& model = job.job.model;
  for (int stage = 0; stage < shape.stages; ++stage) {
    StageParameters& held = out[static_cast<std::size_t>(stage)];
    LayersSideBySide& most = held.side_by_side;
    for (int chunk = 0; chunk < chunks_held(shape) && most.smaller < held.largest_layer; ++chunk) {
      const int position = layer_chunk_of(shape, {stage, chunk});
      const int mtp_layers = position + 1 == layer_chunks(shape) ? model.mtp_layers : 0;
      const LayersSideBySide of_chunk = side_by_side(
          model, layers.before(position), layers[position] + mtp_layers, sizes, held.largest_layer);
      if (of_chunk.larger + of_chunk.smaller > most.larger + most.smaller) most = of_chunk;
    }
  }
}

void add_ends(const PreparedJob& job, const Plan& plan, std::vector<StageParameters>& stages) {
  const bool tied = job.job.model.tied_embeddings;
  const bool shared = shares_embedding(job.job.model);
  const double matrix = vocabulary_matrix(job, plan);
  for (StageParameters& stage : stages) {
    if (stage.embedding) stage.embedding_matrix = matrix + job.end_parameters.positions;
    // A tied head on another stage than the embedding needs a copy of it.
    if (stage.head && !(tied && stage.embedding)) stage.head_matrix = matrix;
    // So do MTP layers there, unless the tied head is that copy.
    if (stage.head && !stage.embedding && shared && !tied) stage.head_matrix += matrix;
    if (stage.head) stage.final_norm = job.end_parameters.final_norm;
    stage.dense += stage.of_ends();
    if (shared && stage.embedding != stage.head) stage.tied_embedding = matrix;
  }
}

}  // namespace

void stage_parameters(const PreparedJob& job, const Plan& plan, std::vector<StageParameters>& out) {
  out.assign(static_cast<std::size_t>(plan.pipeline_parallel), StageParameters{});
  const PipelineShape shape = pipeline_shape(plan);
  const LayersOfChunks layers(plan, job.job.model.layers);
  for (int stage = 0; stage < shape.stages; ++stage) {
    hold(job, layers, shape, stage, out[static_cast<std::size_t>(stage)]);
  }
  const LayerCounts all = job.all_layers();
  LayerSizes sizes{};
  for (std::size_t kind = 0; kind < kLayerKinds; ++kind) {
    if (all[kind] == 0) continue;
    const LayerParameters& layer = job.layer_parameters[kind];
    const double dense = dense_parameters(layer, plan, job.job.model.kv_heads);
    const double experts = expert_parameters(layer, plan);
    sizes[kind] = dense + experts;
    for (StageParameters& stage : out) {
      if (stage.kinds[kind] == 0) continue;
      stage.dense += stage.kinds[kind] * dense;
      stage.experts += stage.kinds[kind] * experts;
      stage.largest_layer = std::max(stage.largest_layer, sizes[kind]);
    }
  }
  set_side_by_side(job, layers, shape, sizes, out);
  add_ends(job, plan, out);
}

}  // namespace trainyard
