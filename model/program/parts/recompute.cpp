#include "model/program/parts/recompute.h"

#include <vector>

#include "model/plan/dealt_layers.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

Repeats selective_repeats(const Stack& stack, int local_layer) {
  switch (stack.selective) {
    case SelectiveRecompute::core_attention:
      return stack.flash_attention ? Repeats::nothing : Repeats::attention_core;
    case SelectiveRecompute::half_of_layers:
      return local_layer % 2 == 0 ? Repeats::everything : Repeats::nothing;
    case SelectiveRecompute::every_second_matmul:
      break;
  }
  return Repeats::every_second_matmul;
}

// Those of multi-token prediction are in the network's last chunk.
std::vector<int> layers_of_chunks(const Lowering& lowering, int stage) {
  const PipelineShape shape = pipeline_shape(lowering.plan);
  const LayersOfChunks layers(lowering.plan, lowering.model.layers);
  std::vector<int> chunks;
  for (int chunk = 0; chunk < chunks_held(shape); ++chunk) {
    const int position = layer_chunk_of(shape, {stage, chunk});
    const bool last = position + 1 == layer_chunks(shape);
    chunks.push_back(layers[position] + (last ? lowering.model.mtp_layers : 0));
  }
  return chunks;
}

bool is_among_first(const Lowering& lowering, int stage, int count, int local_layer) {
  const std::vector<int> chunks = layers_of_chunks(lowering, stage);
  std::vector<int> dealt(chunks.size());
  deal_layers(chunks, count, dealt);
  int position = local_layer;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (position < chunks[chunk]) return position < dealt[chunk];
    position -= chunks[chunk];
  }
  return false;  // the stage has no such layer
}

}  // namespace

Repeats repeats_of(const Lowering& lowering, int stage, int local_layer) {
  const Recompute recompute = recompute_of(lowering.plan, stage);
  const int full = recompute.full_layers;
  switch (recompute.mode) {
    case RecomputeMode::full:
      return full == 0 || is_among_first(lowering, stage, full, local_layer) ? Repeats::everything
                                                                             : Repeats::nothing;
    case RecomputeMode::selective:
      return selective_repeats(lowering.training.stack, local_layer);
    case RecomputeMode::none:
    case RecomputeMode::automatic:
      break;
  }
  return Repeats::nothing;
}

}  // namespace trainyard
