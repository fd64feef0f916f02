#include "model/cost/memory/kept_activations.h"

#include <algorithm>

#include "model/plan/dealt_layers.h"

namespace trainyard {

Bytes kept_of(const SavedBytes& saved, Recompute recompute, double repeated) {
  switch (recompute.mode) {
    case RecomputeMode::none:
    case RecomputeMode::automatic:
      return saved.everything;
    case RecomputeMode::selective:
      return saved.selective;
    case RecomputeMode::full:
      break;
  }
  return saved.input_only * repeated + saved.everything * (1 - repeated);
}

KeptInChunks::KeptInChunks(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
                           const StageParameters& stage, int index)
    : job_(job),
      plan_(plan),
      costs_(costs),
      stage_(stage),
      index_(index),
      shape_(pipeline_shape(plan)),
      recompute_(what_is_repeated(job.job.training.stack, recompute_of(plan, index), stage.layers)),
      layers_(plan, job.job.model.layers),
      boundaries_(job, plan, index) {
  const Stack& stack = job.job.training.stack;
  const Recompute named = recompute_of(plan, index);
  if (!repeats_some(stack, named) || has_many()) return;
  if (repeats_every_second(stack, named)) {
    second_.emplace(job, plan, index, named);
    return;
  }
  InlineVector<int, kMostChunks> layers;
  for (int chunk = 0; chunk < chunks_held(shape_); ++chunk) {
    layers.push_back(layers_of(chunk));
    repeated_.push_back(0);
  }
  deal_layers({layers.begin(), layers.size()}, recompute_.full_layers,
              {repeated_.begin(), repeated_.size()});
}

Bytes KeptInChunks::in_flight(bool with_embedding) const {
  const int held = chunks_held(shape_);
  const bool embedding = with_embedding && stage_.embedding;
  const Bytes of_embedding = embedding ? costs_.embedding.saved.everything : Bytes(0);
  if (held == 1 || has_many()) {
    const Bytes all = has_many() ? saved_by_stage(costs_, stage_, recompute_)
                                 : boundaries_.in_flight(0, of_chunk(0));
    const double chunks = plan_.schedule->chunks_in_flight(shape_, index_);
    return (all + of_embedding) * (chunks / held);
  }
  InlineVector<Bytes, kMostChunks> of_chunks;
  for (int chunk = 0; chunk < held; ++chunk) {
    of_chunks.push_back(boundaries_.in_flight(chunk, of_chunk(chunk)));
    if (position_of(chunk) == 0) of_chunks.back() += of_embedding;
  }
  return most_kept(*plan_.schedule, shape_, index_, {of_chunks.begin(), of_chunks.size()});
}

Bytes KeptInChunks::of_first() const {
  int chunk = 0;
  while (position_of(chunk) != 0) ++chunk;
  return of_chunk(chunk);
}

Bytes KeptInChunks::gone_before_repeats() const {
  if (repeated_.empty()) return Bytes(0);
  Bytes least(1e30);
  for (int chunk = 0; chunk < chunks_held(shape_); ++chunk) {
    const int repeated = repeated_[static_cast<std::size_t>(chunk)];
    if (repeated == 0) continue;
    least = std::min(least, of_chunk(chunk, repeated) - of_chunk(chunk, layers_of(chunk)));
  }
  return least;
}

Bytes KeptInChunks::most_made_again() const {
  Bytes most(second_ ? 0 : 1e30);
  for (int chunk = 0; second_ && chunk < chunks_held(shape_); ++chunk) {
    most = std::max(most, most_made_again_in(chunk));
  }
  return most;
}

// From the last layer to the first, as backward passes come to them.
Bytes KeptInChunks::most_made_again_in(int chunk) const {
  Bytes most, gone;
  const int first = layers_.before(position_of(chunk));
  for (int i = layers_of(chunk); i-- > 0;) {
    const LayerKind kind = layer_kind(job_.job.model, first + i);
    const SavedBytes& saved = costs_.layers[static_cast<std::size_t>(index_of(kind))].saved;
    const bool again = second_->has(chunk, i);
    if (again) most = std::max(most, saved.everything - gone);
    gone += again ? saved.input_only : saved.everything;
  }
  return most;
}

int KeptInChunks::mtp_layers_of(int chunk) const {
  return position_of(chunk) + 1 == layer_chunks(shape_) ? job_.job.model.mtp_layers : 0;
}

int KeptInChunks::repeated_of(int chunk) const {
  if (recompute_.mode != RecomputeMode::full) return 0;
  return repeated_.empty() ? layers_of(chunk) : repeated_[static_cast<std::size_t>(chunk)];
}

Bytes KeptInChunks::of_chunk(int chunk) const {
  if (!second_) return of_chunk(chunk, repeated_of(chunk));
  const int position = position_of(chunk);
  LayerCounts kinds = job_.layers_between(layers_.before(position), layers_[position]);
  kinds[kMtpKind] += mtp_layers_of(chunk);
  return of_kinds(kinds, second_->of(chunk));
}

// The first form spares what plans of alike layers need not: they are most of a search.
Bytes KeptInChunks::of_chunk(int chunk, int all_repeated) const {
  const int position = position_of(chunk);
  const int own = layers_[position], mtp_layers = mtp_layers_of(chunk);
  const int repeated = std::min(own, all_repeated);
  const Bytes of_mtp = of_kind(kMtpKind, mtp_layers, all_repeated - repeated);
  if (job_.only_kind) {
    return of_kind(static_cast<std::size_t>(index_of(*job_.only_kind)), own, repeated) + of_mtp;
  }
  const int first = layers_.before(position);
  return of_kinds(job_.layers_between(first, own), job_.layers_between(first, repeated)) + of_mtp;
}

Bytes KeptInChunks::of_kinds(const LayerCounts& kinds, const LayerCounts& repeated) const {
  Bytes kept;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    kept += of_kind(kind, kinds[kind], repeated[kind]);
  }
  return kept;
}

Bytes KeptInChunks::of_kind(std::size_t kind, int count, int repeated) const {
  if (count == 0) return Bytes(0);
  const SavedBytes& saved = costs_.layers[kind].saved;
  return kept_of(saved, recompute_, 1) * repeated +
         kept_of(saved, recompute_, 0) * (count - repeated);
}

}  // namespace trainyard
