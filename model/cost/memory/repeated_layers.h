// Which layers of a stage are repeated whole, and what they have beside the activations in flight.
// Backward passes run from the last layer of a chunk to the first: they come to the first ones,
// which are repeated, when nothing is left of the layers behind those.
#pragma once

#include <algorithm>
#include <array>

#include "model/cost/sharding/stage_parameters.h"
#include "model/inline_vector.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

// Of a stage that repeats some of its layers, those that it repeats of each chunk: the first ones,
// or every second one of the stage's. Requires: kMostChunks at most.
class RepeatedInChunks {
 public:
  static constexpr int kMostChunks = 128;
  RepeatedInChunks(const PreparedJob& job, const Plan& plan, int stage, Recompute recompute);
  LayerCounts of(int chunk) const;
  // Whether this one of a chunk's layers is repeated.
  bool has(int chunk, int layer) const;

 private:
  int position_of(int chunk) const { return layer_chunk_of(shape_, {stage_, chunk}); }
  LayerCounts of_every_second(int chunk) const;

  const PreparedJob& job_;
  PipelineShape shape_;
  LayersOfChunks layers_;
  int stage_;
  bool every_second_;
  InlineVector<int, kMostChunks> held_;   // layers of each chunk
  InlineVector<int, kMostChunks> dealt_;  // repeated ones, where those are the first
};

// Share of a stage's layers of each kind that full recomputation repeats: of a number of layers it
// and of every second one it depends on which those are.
using RepeatedShares = std::array<double, kLayerKinds>;
RepeatedShares repeated_shares(const PreparedJob& job, const Plan& plan,
                               const StageParameters& held, int stage, Recompute recompute);

// The same of a plan's own recomputation, and the share of the layers that it repeats in part.
struct RepeatedOnStage {
  RepeatedShares full;
  double selective = 0;
};
RepeatedOnStage repeated_on_stage(const PreparedJob& job, const Plan& plan,
                                  const StageParameters& held, int stage);

// While a layer is repeated, beside all that is in flight: what is made again, less what repeating
// the layers behind it would have spared. Their inputs count as kept although they are gone too: so
// no number of repeated layers takes less than all of them, which searches rely on.
inline Bytes beside_kept(Bytes again, Bytes behind) { return std::max(Bytes(0), again - behind); }

}  // namespace trainyard
