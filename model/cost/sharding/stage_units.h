// The units of a stage (embedding, layers, head) as the passes of a micro-batch meet them, with the
// communication of their parameters, and what of it shows. Layers of equal work are counted by the
// closed form of overlap.h, unlike ones one by one. Internal to model/cost.
#pragma once

#include <array>

#include "model/cost/sharding/data_parallel.h"
#include "model/cost/sharding/overlap.h"
#include "model/cost/sharding/stage_sync.h"
#include "model/cost/sharding/unlike_units.h"
#include "model/inline_vector.h"
#include "model/job.h"

namespace trainyard {

using PassPart = Seconds PassTimes::*;  // null: both halves of a backward pass
inline Seconds part_of(const PassTimes& times, PassPart part) {
  return part == nullptr ? times.backward() : times.*part;
}

// In which order a pass visits the units of a stage.
enum class PassWay { forward, backward };

// How often a pass gathers a unit's weights, and reduces its gradients.
struct UnitMoves {
  double gathers = 0, reductions = 0;
};
inline constexpr UnitMoves kGather{1, 0}, kReduce{0, 1}, kBoth{1, 1};

// Share of a stage's layers that one micro-batch passes: under Route::both_ways one of the two
// copies.
inline double share_met(const Plan& plan) {
  return plan.schedule->route == Route::both_ways ? 0.5 : 1.0;
}

// Where micro-batches go both ways a stage has two copies of layers. The near one is for those that
// enter at the nearer end of the pipeline and may have the embedding; the far one may have the head
// (model/schedule/kinds/dualpipe.cpp).
enum class LayerCopy { near, far };

// `rate`: seconds of messages that get done in a second of the pass beside them.
class StageUnits {
 public:
  // `sync`: of the stage. All arguments outlive this.
  StageUnits(const PreparedJob& job, const Plan& plan, PipelineShape shape,
             const StageParameters& stage, const StageWork& work, const StageSync& sync);

  // All of the stage with one of its layers, in the order of a forward pass, messages in seconds of
  // the pass beside them (PassUnit); and those of a copy.
  UnitSequence sequence(PassPart part, UnitMoves moves, double rate) const;
  UnitSequence copy(PassPart part, UnitMoves moves, double rate, LayerCopy which) const;
  // Sets the number of layers and the ends to those of a chunk, for a pass this way.
  void take_chunk(int chunk, PassWay way, UnitSequence& units) const;
  // Units of a chunk in the order of a pass this way, each bucket as one unit: its messages wait
  // for all of its work, or all of its work for them. The same units without buckets.
  UnitSequence in_buckets(int chunk, PassWay way, const UnitSequence& units, UnitMoves moves,
                          double rate) const;

  // Consecutive chunks with the same units: the first chunk, the longer ones, the others, the last.
  struct ChunkRun {
    int first, size;
  };
  const InlineVector<ChunkRun, 4>& runs() const { return runs_; }

  // Exposed messages in the passes of a micro-batch: through all chunks, and through one.
  ShownInPass shown(PassPart part, UnitMoves moves, double rate, PassWay way) const;
  ShownInPass shown_in_chunk(PassPart part, UnitMoves moves, double rate, PassWay way,
                             int chunk) const;

 private:
  // One layer of each kind, and the ends.
  struct UnlikeUnits {
    std::array<UnlikeUnit, kLayerKinds> layers;
    UnlikeUnit first, last;
  };
  // A chunk that the stage holds.
  struct Chunk {
    int first, layers;  // MTP layers included, behind all others
    bool has_first, has_last;
  };

  void add_runs();
  Seconds before_experts(PassPart part, std::size_t kind) const;
  bool has_unlike_units() const;
  UnlikeUnit unlike_layer(std::size_t kind, PassPart part, UnitMoves moves, double rate) const;
  UnlikeUnits unlike_units(PassPart part, UnitMoves moves, double rate) const;
  Chunk chunk_of(int chunk) const;
  std::size_t kind_at(int layer) const;
  ShownInPass shown_forward(const Chunk& of, const UnlikeUnits& units) const;
  ShownInPass shown_backward(const Chunk& of, const UnlikeUnits& units) const;
  ShownInPass shown_one_by_one(PassPart part, UnitMoves moves, double rate, PassWay way) const;

  const PreparedJob& job_;
  const Plan& plan_;
  const Transformer& model_;
  const StageParameters& stage_;
  const StageWork& work_;
  const StageSync& sync_;
  PipelineShape shape_;
  SyncTimes layer_;                          // of each layer
  int layers_each_ = 0, longer_chunks_ = 0;  // layers of a chunk; first chunks with one more
  InlineVector<ChunkRun, 4> runs_;
};

}  // namespace trainyard
