#include "model/cost/kept_activations.h"

#include "model/inline_vector.h"

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
      recompute_(recompute_of(plan, index)),
      repeated_(full_recompute_share(recompute_, stage.layers)) {}

Bytes KeptInChunks::in_flight(bool with_embedding) const {
  const int held = chunks_held(shape_);
  const bool embedding = with_embedding && stage_.embedding;
  const Bytes of_embedding = embedding ? costs_.embedding.saved.everything : Bytes(0);
  if (held == 1 || held > kMostChunks) {
    const double chunks = plan_.schedule->chunks_in_flight(shape_, index_);
    return (saved_by_stage(costs_, stage_, recompute_) + of_embedding) * (chunks / held);
  }
  const LayersOfChunks layers(plan_, job_.job.model.layers);
  InlineVector<Bytes, kMostChunks> of_chunks;
  for (int chunk = 0; chunk < held; ++chunk) {
    const int position = layer_chunk_of(shape_, {index_, chunk});
    of_chunks.push_back(of_layers(layers, position));
    if (position == 0) of_chunks.back() += of_embedding;
  }
  return most_kept(*plan_.schedule, shape_, index_, {of_chunks.begin(), of_chunks.size()});
}

// The first form spares what plans of alike layers need not: they are most of a search.
Bytes KeptInChunks::of_layers(const LayersOfChunks& layers, int position) const {
  const bool last = position + 1 == layer_chunks(shape_);
  const int mtp_layers = last ? job_.job.model.mtp_layers : 0;
  const Bytes of_mtp = mtp_layers > 0 ? of_kind(kMtpKind) * mtp_layers : Bytes(0);
  if (job_.only_kind) {
    const auto only = static_cast<std::size_t>(index_of(*job_.only_kind));
    return of_kind(only) * layers[position] + of_mtp;
  }
  Bytes kept;
  const auto kinds = job_.layers_between(layers.before(position), layers[position]);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kinds[kind] > 0) kept += of_kind(kind) * kinds[kind];
  }
  return kept + of_mtp;
}

}  // namespace trainyard
