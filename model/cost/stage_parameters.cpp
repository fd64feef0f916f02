#include "model/cost/stage_parameters.h"

#include <algorithm>

#include "model/schedule/schedule.h"
#include "model/workload/operators.h"

namespace trainyard {
namespace {

// Dense parameters of one layer on one rank: sharded tensors over t, KV heads at most g-fold.
double dense_parameters(const LayerParameters& layer, const Plan& plan, int kv_heads) {
  const double t = plan.tensor_parallel;
  const double kv_shards = std::min(t, static_cast<double>(std::max(kv_heads, 1)));
  return (layer.attention_sharded + layer.mlp_sharded) / t + layer.kv_sharded / kv_shards +
         layer.replicated;
}

double expert_parameters(const LayerParameters& layer, const Plan& plan) {
  return (layer.experts / plan.expert_tensor_parallel + layer.expert_biases) / plan.expert_parallel;
}

double vocabulary_matrix(const PreparedJob& job, const Plan& plan) {
  const auto padded = padded_vocabulary(job.job.model.vocabulary, plan.tensor_parallel);
  return static_cast<double>(padded) * job.job.model.hidden_size / plan.tensor_parallel;
}

// The stages that hold a chunk of layers: two of them when the other half of the micro-batches
// comes from the other end.
void for_holders(const Plan& plan, int layer_chunk, std::vector<StageParameters>& stages,
                 auto&& visit) {
  const PipelineShape shape = pipeline_shape(plan);
  const auto stage = [&](int microbatch) -> StageParameters& {
    return stages[static_cast<std::size_t>(place_of(shape, microbatch, layer_chunk).stage)];
  };
  visit(stage(0));
  if (shape.route == Route::both_ways) visit(stage(shape.microbatches - 1));
}

void distribute_layers(const PreparedJob& job, const Plan& plan,
                       std::vector<StageParameters>& stages) {
  int first = 0;
  const int chunks = plan.pipeline_parallel * plan.virtual_stages;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int count = layers_of_chunk(plan, job.job.model.layers, chunk);
    const LayerCounts counts = job.only_kind ? LayerCounts{} : job.layers_between(first, count);
    for_holders(plan, chunk, stages, [&](StageParameters& stage) {
      stage.layers += count;
      for (std::size_t kind = 0; kind < counts.size(); ++kind) stage.kinds[kind] += counts[kind];
    });
    first += count;
  }
  if (!job.only_kind) return;
  const auto kind = static_cast<std::size_t>(index_of(*job.only_kind));
  for (StageParameters& stage : stages) stage.kinds[kind] = stage.layers;
}

void add_ends(const PreparedJob& job, const Plan& plan, std::vector<StageParameters>& stages) {
  const bool tied = job.job.model.tied_embeddings;
  const double matrix = vocabulary_matrix(job, plan);
  const int last = plan.pipeline_parallel * plan.virtual_stages - 1;
  for_holders(plan, 0, stages, [](StageParameters& stage) { stage.embedding = true; });
  for_holders(plan, last, stages, [](StageParameters& stage) { stage.head = true; });
  for (StageParameters& stage : stages) {
    if (stage.embedding) stage.dense += matrix + job.end_parameters.positions;
    if (stage.head) stage.dense += job.end_parameters.final_norm;
    // A tied head on a stage of its own needs a copy of the embedding.
    if (stage.head && !(tied && stage.embedding)) stage.dense += matrix;
    if (tied && stage.embedding != stage.head) stage.tied_embedding = matrix;
  }
}

}  // namespace

void stage_parameters(const PreparedJob& job, const Plan& plan, std::vector<StageParameters>& out) {
  out.assign(static_cast<std::size_t>(plan.pipeline_parallel), StageParameters{});
  distribute_layers(job, plan, out);
  for (std::size_t kind = 0; kind < kLayerKinds; ++kind) {
    const LayerParameters& layer = job.layer_parameters[kind];
    const double dense = dense_parameters(layer, plan, job.job.model.kv_heads);
    const double experts = expert_parameters(layer, plan);
    for (StageParameters& stage : out) {
      if (stage.kinds[kind] == 0) continue;
      stage.dense += stage.kinds[kind] * dense;
      stage.experts += stage.kinds[kind] * experts;
      stage.largest_layer = std::max(stage.largest_layer, dense + experts);
    }
  }
  add_ends(job, plan, out);
}

}  // namespace trainyard
