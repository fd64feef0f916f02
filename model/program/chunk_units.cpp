#include "model/program/chunk_units.h"

#include <algorithm>
#include <numeric>

#include "model/program/parts/offload.h"

namespace trainyard {

StageChunks::StageChunks(const Lowering& lowering, const ProgramBlocks& blocks, PipelineShape shape,
                         int stage)
    : lowering_(lowering), blocks_(blocks), shape_(shape), stage_(stage) {
  const LayersOfChunks layers_before(lowering.plan, lowering.model.layers);
  ChunkLayout layout;
  for (int chunk = 0; chunk < chunks_held(shape_); ++chunk) {
    layout.first_layer = layers_before.before(layer_chunk(chunk));
    layout.layers = layers(layer_chunk(chunk));
    layouts_.push_back(layout);
    layout.first_position += layout.layers + 1;
    layout.first_local_layer += layout.layers;
  }
}

int StageChunks::layers(int layer_chunk) const {
  const bool last = layer_chunk == layer_chunks(shape_) - 1;
  return LayersOfChunks(lowering_.plan, lowering_.model.layers)[layer_chunk] +
         (last ? lowering_.model.mtp_layers : 0);
}

bool StageChunks::has_head() const {
  const int last = layer_chunks(shape_) - 1;
  return stage_ == end_stage(last) || stage_ == return_stage(last);
}

int StageChunks::neighbour(int chunk, int distance) const {
  const bool returns = shape_.route == Route::both_ways && chunk == 1;
  const int next = layer_chunk(chunk) + distance;
  return returns ? return_stage(next) : end_stage(next);
}

std::vector<int> StageChunks::in_order() const {
  std::vector<int> order(layouts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
    return layouts_[static_cast<std::size_t>(a)].first_layer <
           layouts_[static_cast<std::size_t>(b)].first_layer;
  });
  return order;
}

const UnitBlocks& StageChunks::layer_blocks(const ChunkLayout& layout, int position) const {
  const LayerKind kind = layer_kind(lowering_.model, layout.first_layer + position);
  const LayerWay way = way_of(lowering_, stage_, layout.first_local_layer + position);
  return blocks_.layers_that(way)[static_cast<std::size_t>(index_of(kind))];
}

BlockCall StageChunks::layer_call(int chunk, int position, int block) const {
  const ChunkLayout& layout = layouts_[static_cast<std::size_t>(chunk)];
  return {.block = block,
          .layer = layout.first_layer + position,
          .position = position,
          .local_layer = layout.first_local_layer + position};
}

std::vector<ChunkUnit> StageChunks::units(int chunk) const {
  const ChunkLayout& layout = layouts_[static_cast<std::size_t>(chunk)];
  std::vector<ChunkUnit> units;
  if (has_embedding(chunk)) units.push_back({&blocks_.embedding, {}});
  for (int position = 0; position < layout.layers; ++position) {
    const BlockCall at = layer_call(chunk, position, -1);
    const bool leaves = sends_activations_away(lowering_.plan, at.local_layer);
    units.push_back({&layer_blocks(layout, position), at, true, false, leaves});
  }
  if (has_head(chunk)) {
    // The head and the embeddings of MTP layers stand where the state before those is.
    const int depths = lowering_.model.mtp_layers;
    const BlockCall at{.position = layout.layers - depths};
    if (depths > 0) units.insert(units.end() - depths, {&blocks_.mtp_embedding, at, false, true});
    units.push_back({&blocks_.head, at});
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i].chunk = static_cast<std::size_t>(chunk);
    units[i].place = i;
  }
  return units;
}

}  // namespace trainyard
