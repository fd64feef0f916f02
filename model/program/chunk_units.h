// The units of a stage's chunks (layers, the embedding, the head) in the order of a forward pass,
// each with its blocks and its place. Internal to model/program.
#pragma once

#include <cstddef>
#include <vector>

#include "model/program/blocks.h"
#include "model/program/parts/unit.h"
#include "model/schedule/schedule.h"

namespace trainyard {

// A unit of a chunk: its blocks, and where it stands.
struct ChunkUnit {
  const UnitBlocks* blocks = nullptr;
  BlockCall at;
  bool is_layer = false;
  bool is_brief = false;             // too short to hide a transfer
  bool leaves = false;               // its activations leave the device
  std::size_t chunk = 0, place = 0;  // its chunk, and its place there in a forward pass
};

// The chunks of one stage. Its arguments outlive it.
class StageChunks {
 public:
  StageChunks(const Lowering& lowering, const ProgramBlocks& blocks, PipelineShape shape,
              int stage);

  int stage() const { return stage_; }
  const std::vector<ChunkLayout>& layouts() const { return layouts_; }
  bool has_embedding(int chunk) const { return layer_chunk(chunk) == 0; }
  bool has_head(int chunk) const { return layer_chunk(chunk) == layer_chunks(shape_) - 1; }
  // In any of its chunks.
  bool has_embedding() const { return stage_ == end_stage(0) || stage_ == return_stage(0); }
  bool has_head() const;

  // The stage of the chunk that a micro-batch visits `distance` chunks after this one (−1: before).
  int neighbour(int chunk, int distance) const;
  // The chunks in the order of the network, so that stages with copies of a layer meet in it.
  std::vector<int> in_order() const;

  const UnitBlocks& layer_blocks(const ChunkLayout& layout, int position) const;
  BlockCall layer_call(int chunk, int position, int block) const;
  // In the order of a forward pass.
  std::vector<ChunkUnit> units(int chunk) const;

 private:
  int layer_chunk(int chunk) const { return layer_chunk_of(shape_, {stage_, chunk}); }
  int layers(int layer_chunk) const;
  int end_stage(int layer_chunk) const { return place_of(shape_, 0, layer_chunk).stage; }
  // The stage where micro-batches that go from the last stage to the first find this layer chunk.
  int return_stage(int layer_chunk) const {
    return place_of(shape_, shape_.microbatches - 1, layer_chunk).stage;
  }

  const Lowering& lowering_;
  const ProgramBlocks& blocks_;
  PipelineShape shape_;
  int stage_;
  std::vector<ChunkLayout> layouts_;
};

}  // namespace trainyard
