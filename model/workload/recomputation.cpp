#include "model/workload/recomputation.h"

namespace trainyard {

double every_second_share(const Transformer& model, const Operator& op) {
  switch (op.kind) {
    case OperatorKind::qkv_projection:
      return static_cast<double>(model.kv_heads) / (model.attention_heads + 2.0 * model.kv_heads);
    case OperatorKind::output_projection:
      return 1;
    case OperatorKind::attention_core:
    case OperatorKind::mlp_down:
    case OperatorKind::shared_down:
    case OperatorKind::expert_down:
    case OperatorKind::ring_merge:    // of what is kept
    case OperatorKind::scatter_copy:  // what it scatters is kept
      return 0;
    case OperatorKind::permutation:  // on the way to the experts
      return 0.5;
    default:
      return op.cls == OperatorClass::memory_bound ? 1 : 0.5;
  }
}

bool ends_every_second(const Stack& stack, OperatorKind kind) {
  return kind == OperatorKind::expert_down || (stack.compiled && kind == OperatorKind::mlp_down);
}

}  // namespace trainyard
