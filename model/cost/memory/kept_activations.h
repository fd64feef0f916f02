// What the layers of a stage keep of micro-batches for backward, chunk by chunk. Internal to
// model/cost.
#pragma once

#include <optional>

#include "model/cost/memory/held_at_boundaries.h"
#include "model/cost/memory/memory.h"
#include "model/cost/memory/repeated_layers.h"
#include "model/inline_vector.h"

namespace trainyard {

// Of a layer's, where so much of the stage is repeated whole.
Bytes kept_of(const SavedBytes& saved, Recompute recompute, double repeated);

// What a micro-batch keeps in each chunk of a stage: of its layers, of those of multi-token
// prediction in the network's last chunk, and of the embedding in its first.
class KeptInChunks {
 public:
  KeptInChunks(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
               const StageParameters& stage, int index);

  // By all micro-batches in flight, at the most.
  Bytes in_flight(bool with_embedding) const;
  // What the engine of the pipeline holds beside, whatever is in flight.
  Bytes at_boundaries() const { return boundaries_.standing(); }
  // By one, in the layers of the network's first chunk. Requires: the stage has it.
  Bytes of_first() const;
  // Gone of them at least, but for inputs, when a backward pass comes to a layer that it repeats.
  // Nothing where all layers are repeated.
  Bytes gone_before_repeats() const;
  // Where every second layer is repeated: the most that one of them, made again, has beside what is
  // in flight, nothing being left of the layers behind it. Without end where chunks
  // are too many to tell.
  Bytes most_made_again() const;

 private:
  static constexpr int kMostChunks = 128;  // of more, on one stage, the mean is as good

  bool has_many() const { return chunks_held(shape_) > kMostChunks; }
  int position_of(int chunk) const { return layer_chunk_of(shape_, {index_, chunk}); }
  int mtp_layers_of(int chunk) const;
  int repeated_of(int chunk) const;
  int layers_of(int chunk) const { return layers_[position_of(chunk)] + mtp_layers_of(chunk); }
  Bytes of_chunk(int chunk) const;
  Bytes of_chunk(int chunk, int all_repeated) const;
  Bytes of_kinds(const LayerCounts& kinds, const LayerCounts& repeated) const;
  Bytes most_made_again_in(int chunk) const;
  Bytes of_kind(std::size_t kind, int count, int repeated) const;

  const PreparedJob& job_;
  const Plan& plan_;
  const StageCosts& costs_;
  const StageParameters& stage_;
  int index_;
  PipelineShape shape_;
  Recompute recompute_;
  LayersOfChunks layers_;
  HeldAtBoundaries boundaries_;
  InlineVector<int, kMostChunks> repeated_;  // of each chunk's layers; empty: all, or none
  std::optional<RepeatedInChunks> second_;   // every second layer of the stage, in place of those
};

}  // namespace trainyard
