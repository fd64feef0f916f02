#include "model/cost/memory/repeated_layers.h"

#include <algorithm>
#include <numeric>

#include "model/cost/memory/memory.h"
#include "model/plan/dealt_layers.h"

namespace trainyard {
namespace {

bool has_one_kind(const StageParameters& held) {
  return std::ranges::count_if(held.kinds, [](int layers) { return layers > 0; }) <= 1;
}

}  // namespace

RepeatedInChunks::RepeatedInChunks(const PreparedJob& job, const Plan& plan, int stage,
                                   Recompute recompute)
    : job_(job),
      shape_(pipeline_shape(plan)),
      layers_(plan, job.job.model.layers),
      stage_(stage),
      every_second_(repeats_every_second(job.job.training.stack, recompute)) {
  for (int chunk = 0; chunk < chunks_held(shape_); ++chunk) {
    const bool last = position_of(chunk) + 1 == layer_chunks(shape_);
    held_.push_back(layers_[position_of(chunk)] + (last ? job.job.model.mtp_layers : 0));
    dealt_.push_back(0);
  }
  if (every_second_) return;
  deal_layers({held_.begin(), held_.size()}, recompute.full_layers,
              {dealt_.begin(), dealt_.size()});
}

bool RepeatedInChunks::has(int chunk, int layer) const {
  if (!every_second_) return layer < dealt_[static_cast<std::size_t>(chunk)];
  const int before = std::accumulate(held_.begin(), held_.begin() + chunk, 0);
  return (before + layer) % 2 == 0;
}

LayerCounts RepeatedInChunks::of(int chunk) const {
  const int position = position_of(chunk);
  if (every_second_) return of_every_second(chunk);
  const int repeated = dealt_[static_cast<std::size_t>(chunk)];
  const int own = std::min(repeated, layers_[position]);
  LayerCounts counts = job_.layers_between(layers_.before(position), own);
  counts[kMtpKind] += repeated - own;
  return counts;
}

LayerCounts RepeatedInChunks::of_every_second(int chunk) const {
  LayerCounts counts{};
  const int first = layers_.before(position_of(chunk));
  for (int i = 0; i < held_[static_cast<std::size_t>(chunk)]; ++i) {
    if (has(chunk, i))
      ++counts[static_cast<std::size_t>(index_of(layer_kind(job_.job.model, first + i)))];
  }
  return counts;
}

RepeatedShares repeated_shares(const PreparedJob& job, const Plan& plan,
                               const StageParameters& held, int stage, Recompute recompute) {
  RepeatedShares shares;
  const Stack& stack = job.job.training.stack;
  shares.fill(full_recompute_share(what_is_repeated(stack, recompute, held.layers), held.layers));
  const int chunks = chunks_held(pipeline_shape(plan));
  const bool mean = has_one_kind(held) || chunks > RepeatedInChunks::kMostChunks;
  if (!repeats_some(stack, recompute) || mean) return shares;
  const RepeatedInChunks repeated(job, plan, stage, recompute);
  LayerCounts sum{};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const LayerCounts of_chunk = repeated.of(chunk);
    for (std::size_t kind = 0; kind < sum.size(); ++kind) sum[kind] += of_chunk[kind];
  }
  for (std::size_t kind = 0; kind < shares.size(); ++kind) {
    if (held.kinds[kind] > 0) shares[kind] = static_cast<double>(sum[kind]) / held.kinds[kind];
  }
  return shares;
}

RepeatedOnStage repeated_on_stage(const PreparedJob& job, const Plan& plan,
                                  const StageParameters& held, int stage) {
  const Recompute recompute = recompute_of(plan, stage);
  const bool in_part = recompute.mode == RecomputeMode::selective &&
                       !repeats_every_second(job.job.training.stack, recompute);
  return {repeated_shares(job, plan, held, stage, recompute), in_part ? 1.0 : 0.0};
}

}  // namespace trainyard
