#include "model/cost/sharding/gradient_buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cost/memory/offload.h"

namespace trainyard {
namespace {

double first_limit(const Stack& stack, const Plan& plan) {
  return std::max(stack.bucket_parameters, stack.bucket_parameters_per_rank * plan.data_parallel);
}

}  // namespace

bool uses_buckets(const Training& training, const Plan& plan) {
  const bool once_a_step = plan.zero_stage <= 1;
  // Copies of a layer, on two stages, are added up layer by layer.
  const bool one_copy = plan.schedule->route != Route::both_ways;
  return first_limit(training.stack, plan) > 0 && plan.overlap.data_parallel && once_a_step &&
         one_copy && !gradients_away(plan) && !weights_away(training, plan);
}

EndsApart ends_apart(const Transformer& model, const Plan& plan) {
  if (plan.pipeline_parallel == 1) return {};
  const bool far = plan.schedule->route == Route::loop;
  return {shares_embedding(model), model.tied_embeddings && far};
}

double bucket_limit(const Stack& stack, const Plan& plan, ChunkPlace place) {
  const bool first = place.stage == 0 && place.chunk == 0;
  if (plan.pipeline_parallel > 1 && !first) return std::numeric_limits<double>::infinity();
  return first_limit(stack, plan);
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
  if (has_head && !chunk.apart.head) {
    cut.with_head = layers_to_fill(limit - chunk.head, chunk);
    cut.one = cut.with_head == chunk.layers && chunk.head + chunk.layers * chunk.layer < limit &&
              !chunk.apart.embedding;
  }
  const int behind = chunk.layers - cut.with_head;
  const bool fills = chunk.layers * chunk.layer >= limit;
  cut.each = std::max(1, layers_to_fill(limit, chunk));
  cut.full = fills ? behind / cut.each : 0;
  cut.rest = behind - cut.full * cut.each;
  const int rest = cut.rest > 0 ? 1 : 0;
  const int embedding = chunk.embedding > 0 && !cut.one ? 1 : 0;
  const int last = chunk.apart.embedding ? rest + embedding : std::max(rest, embedding);
  cut.messages = (has_head ? 1 : 0) + cut.full + last;
  return cut;
}

int chunks_with_passes(const Plan& plan) {
  return plan.pipeline_parallel == 1 ? 1 : pipeline_shape(plan).chunks;
}

BucketedChunk buckets_of_chunk(const PreparedJob& job, const Plan& plan,
                               const StageParameters& stage, int chunk, bool experts) {
  const int chunks = chunks_with_passes(plan);
  const double layers = std::max(1, stage.layers);
  ChunkParameters held{.layers = stage.layers / chunks + (chunk < stage.layers % chunks ? 1 : 0),
                       .apart = ends_apart(job.job.model, plan)};
  if (experts) {
    held.layer = stage.experts / layers;
  } else {
    held.layer = (stage.dense - stage.embedding_matrix - stage.head_matrix) / layers;
    if (chunk == 0) held.embedding = stage.embedding_matrix;
    if (chunk + 1 == chunks) held.head = stage.head_matrix;
  }
  constexpr int kFirst = 0, kAnyOther = 1;
  const int place = stage.embedding ? kFirst : kAnyOther;
  return bucketed(held, bucket_limit(job.job.training.stack, plan, {place, chunk}));
}

}  // namespace trainyard
