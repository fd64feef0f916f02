// Activations of some of a chunk's layers outside the device: when layers wait until they have
// left, and when they are called back. Internal to model/program.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "model/program/chunk_units.h"

namespace trainyard {

// Of one unit, −1 for none: before its forward pass, the wait until activations of a layer before
// it have left; as its backward pass begins, the copy that brings those of such a layer back.
struct UnitDepartures {
  BlockCall left{.block = -1}, called_back{.block = -1};
};
using ChunkDepartures = std::vector<UnitDepartures>;  // [unit]

// Where the first n of a chunk's L layers send their activations away, copies go on beside all
// layers: L − n layers have theirs on the device. Those of layer i have left when layer L − n + i
// begins, and are called back as the backward pass of the layer before that one begins
// (Transformer Engine, pytorch/cpu_offload.py: _default_offload_sync_init).
class DepartureMaker {
 public:
  // `lowering` outlives this, and so do the blocks of the chunks' units.
  explicit DepartureMaker(Lowering& lowering) : lowering_(lowering) {}
  // [chunk]; empty for a chunk of which all layers do so, or none: they take turns (TurnBlocks).
  std::vector<ChunkDepartures> departures_of(const StageChunks& chunks);

 private:
  ChunkDepartures departures_of(const std::vector<ChunkUnit>& units);
  // Blocks for such a layer, so many layers behind it: the wait for its copies away, and the copies
  // back.
  int wait_for(const UnitBlocks& layer, int layers);
  int recall_of(const UnitBlocks& layer, int layers);

  Lowering& lowering_;
  std::map<std::pair<const UnitBlocks*, int>, int> waits_, recalls_;
};

}  // namespace trainyard
