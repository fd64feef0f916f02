// What the layers of a stage keep of micro-batches for backward, chunk by chunk. Internal to
// model/cost.
#pragma once

#include "model/cost/memory.h"

namespace trainyard {

// Of a layer's, where so much of the stage is repeated whole.
Bytes kept_of(const SavedBytes& saved, Recompute recompute, double repeated);

// What a micro-batch keeps in each chunk of a stage: of its layers, of those of multi-token
// prediction in the network's last chunk, and of the embedding in its first. Of all chunks of a
// stage the same share is repeated.
class KeptInChunks {
 public:
  KeptInChunks(const PreparedJob& job, const Plan& plan, const StageCosts& costs,
               const StageParameters& stage, int index);

  // By all micro-batches in flight, at the most.
  Bytes in_flight(bool with_embedding) const;
  // By one, in the layers of the network's first chunk. Requires: the stage has it.
  Bytes of_first() const { return of_layers({plan_, job_.job.model.layers}, 0); }

 private:
  static constexpr int kMostChunks = 128;  // of more, on one stage, the mean is as good

  Bytes of_layers(const LayersOfChunks& layers, int position) const;
  Bytes of_kind(std::size_t kind) const {
    return kept_of(costs_.layers[kind].saved, recompute_, repeated_);
  }

  const PreparedJob& job_;
  const Plan& plan_;
  const StageCosts& costs_;
  const StageParameters& stage_;
  int index_;
  PipelineShape shape_;
  Recompute recompute_;
  double repeated_;
};

}  // namespace trainyard
