#include "model/workload/flop.h"

#include <array>

#include "model/workload/operators.h"
#include "model/workload/recomputation.h"

namespace trainyard {
namespace {

struct LayerFlop {
  Flops all, core;
};

struct RepeatedParts {
  Flops full, core, every_second;
};

// The share of the full scores that is counted. A causal mask leaves half of them; with a window of
// w keys, all but the triangle that the first rows do not fill: s·w − w²/2 of s·w.
double counted_share(const Operator& op, AttentionCount count) {
  if (count == AttentionCount::full) return 1;
  const AttentionShape& core = op.attention;
  return core.sliding ? 1 - core.keys / (2 * core.queries) : 0.5;
}

LayerFlop layer_flop(const Transformer& model, const Training& training, AttentionCount count,
                     LayerKind kind) {
  LayerFlop sum;
  for (const Operator& op : layer_operators(model, training, LayerShard{}, kind)) {
    const Flops flop = op.forward / op.replicas;
    if (op.cls == OperatorClass::attention) {
      sum.core += flop * counted_share(op, count);
    } else {
      sum.all += flop;
    }
  }
  sum.all += sum.core;
  return sum;
}

Flops selective_of(SelectiveRecompute selective, const RepeatedParts& parts) {
  switch (selective) {
    case SelectiveRecompute::core_attention:
      return parts.core;
    case SelectiveRecompute::every_second_matmul:
      return parts.every_second;
    case SelectiveRecompute::half_of_layers:
      break;
  }
  return parts.full / 2;
}

}  // namespace

RepeatedFlop repeated_flop(const Transformer& model, const Training& training, LayerKind kind) {
  const Stack& stack = training.stack;
  RepeatedParts parts;
  bool behind_kept = false;
  for (const Operator& op : layer_operators(model, training, LayerShard{}, kind)) {
    const Flops flop = op.forward / op.replicas;
    if (!(stack.recompute_stops_early && op.after_last_saved)) parts.full += flop;
    if (op.in_attention_core) parts.core += flop;
    if (!behind_kept) parts.every_second += flop * every_second_share(model, op);
    behind_kept = behind_kept || ends_every_second(stack, op.kind);
  }
  return {parts.full, selective_of(stack.selective, parts)};
}

SequenceFlop sequence_forward_flop(const Transformer& model, const Training& training,
                                   AttentionCount count) {
  std::array<LayerFlop, kLayerKinds> by_kind;
  for (std::size_t index = 0; index < by_kind.size(); ++index) {
    const LayerKind kind = layer_kind_at(model, static_cast<int>(index));
    if (kind.moe && model.experts == 0) continue;
    by_kind[index] = layer_flop(model, training, count, kind);
  }
  SequenceFlop sum;
  for (int layer = 0; layer < layers_with_mtp(model); ++layer) {
    const LayerFlop& flop = by_kind[static_cast<std::size_t>(index_of(layer_kind(model, layer)))];
    sum.layers += flop.all;
    sum.attention_core += flop.core;
  }
  for (const Operator& op : head_operators(model, training, LayerShard{})) {
    sum.head += (1 + model.mtp_layers) * (op.forward / op.replicas);
  }
  return sum;
}

Flops model_flop(const Transformer& model, const Training& training, AttentionCount count) {
  const SequenceFlop forward = sequence_forward_flop(model, training, count);
  return (forward.layers + forward.head) * 3.0 * static_cast<double>(training.global_batch);
}

}  // namespace trainyard
