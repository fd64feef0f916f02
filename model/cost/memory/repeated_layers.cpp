#include "model/cost/memory/repeated_layers.h"

#include <algorithm>

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
    : job_(job), shape_(pipeline_shape(plan)), layers_(plan, job.job.model.layers), stage_(stage) {
  InlineVector<int, kMostChunks> in_chunks;
  for (int chunk = 0; chunk < chunks_held(shape_); ++chunk) {
    const bool last = position_of(chunk) + 1 == layer_chunks(shape_);
    in_chunks.push_back(layers_[position_of(chunk)] + (last ? job.job.model.mtp_layers : 0));
    dealt_.push_back(0);
  }
  deal_layers({in_chunks.begin(), in_chunks.size()}, recompute.full_layers,
              {dealt_.begin(), dealt_.size()});
}

LayerCounts RepeatedInChunks::of(int chunk) const {
  const int position = position_of(chunk);
  const int repeated = dealt_[static_cast<std::size_t>(chunk)];
  const int own = std::min(repeated, layers_[position]);
  LayerCounts counts = job_.layers_between(layers_.before(position), own);
  counts[kMtpKind] += repeated - own;
  return counts;
}

RepeatedShares repeated_shares(const PreparedJob& job, const Plan& plan,
                               const StageParameters& held, int stage, Recompute recompute) {
  RepeatedShares shares;
  shares.fill(full_recompute_share(recompute, held.layers));
  const int chunks = chunks_held(pipeline_shape(plan));
  const bool mean = has_one_kind(held) || chunks > RepeatedInChunks::kMostChunks;
  if (!repeats_some(recompute) || mean) return shares;
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
  return {repeated_shares(job, plan, held, stage, recompute),
          recompute.mode == RecomputeMode::selective ? 1.0 : 0.0};
}

}  // namespace trainyard
