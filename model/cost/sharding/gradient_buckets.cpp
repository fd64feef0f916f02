#include "model/cost/sharding/gradient_buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cost/memory/offload.h"

namespace trainyard {

bool uses_buckets(const Training& training, const Plan& plan) {
  const bool once_a_step = plan.zero_stage <= 1;
  // Copies of a layer, on two stages, are added up layer by layer.
  const bool one_copy = plan.schedule->route != Route::both_ways;
  return training.stack.bucket_parameters > 0 && plan.overlap.data_parallel && once_a_step &&
         one_copy && !gradients_away(plan) && !weights_away(training, plan);
}

bool ends_in_buckets(const Transformer& model, const Plan& plan) {
  return !shares_embedding(model) || plan.pipeline_parallel == 1;
}

double bucket_limit(const Stack& stack, const Plan& plan, ChunkPlace place) {
  const bool first = place.stage == 0 && place.chunk == 0;
  if (plan.pipeline_parallel > 1 && !first) return std::numeric_limits<double>::infinity();
  return std::max(stack.bucket_parameters, stack.bucket_parameters_per_rank * plan.data_parallel);
}

namespace {

// Layers of the chunk until a bucket that lacks so many parameters is full.
int layers_to_fill(double lacking, const ChunkParameters& chunk) {
  if (lacking <= 0) return 0;
  if (lacking >= chunk.layers * chunk.layer) return chunk.layers;
  return static_cast<int>(std::ceil(lacking / chunk.layer));
}

}  // namespace

BucketedChunk bucketed(const ChunkParameters& chunk, double limit) {
  BucketedChunk cut;
  const bool has_head = chunk.head > 0;
  if (has_head && !chunk.ends_apart) {
    cut.with_head = layers_to_fill(limit - chunk.head, chunk);
    cut.one = cut.with_head == chunk.layers && chunk.head + chunk.layers * chunk.layer < limit;
  }
  const int behind = chunk.layers - cut.with_head;
  const bool fills = chunk.layers * chunk.layer >= limit;
  cut.each = std::max(1, layers_to_fill(limit, chunk));
  cut.full = fills ? behind / cut.each : 0;
  cut.rest = behind - cut.full * cut.each;
  const int rest = cut.rest > 0 ? 1 : 0;
  const int embedding = chunk.embedding > 0 && !cut.one ? 1 : 0;
  const int last = chunk.ends_apart ? rest + embedding : std::max(rest, embedding);
  cut.messages = (has_head ? 1 : 0) + cut.full + last;
  return cut;
}

BucketedChunk buckets_of_chunk(const PreparedJob& job, const Plan& plan,
                               const StageParameters& stage, int chunk, bool experts) {
  const PipelineShape shape = pipeline_shape(plan);
  const int chunks = shape.stages == 1 ? 1 : shape.chunks;
  const double layers = std::max(1, stage.layers);
  ChunkParameters held{.layers = stage.layers / chunks + (chunk < stage.layers % chunks ? 1 : 0),
                       .ends_apart = !ends_in_buckets(job.job.model, plan)};
  if (experts) {
    held.layer = stage.experts / layers;
  } else {
    held.layer = (stage.dense - stage.embedding_matrix - stage.head_matrix) / layers;
    if (chunk == 0) held.embedding = stage.embedding_matrix;
    if (chunk + 1 == chunks) held.head = stage.head_matrix;
  }
  const int place = stage.embedding ? 0 : 1;  // any but the first stage
  return bucketed(held, bucket_limit(job.job.training.stack, plan, {place, chunk}));
}

}  // namespace trainyard
