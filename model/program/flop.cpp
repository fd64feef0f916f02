#include "model/program/flop.h"

namespace trainyard {

Flops flop_of(const Operation& operation) {
  const GemmShape& gemm = operation.gemm;
  const AttentionShape& core = operation.attention;
  switch (operation.kind) {
    case OperationKind::linear:
    case OperationKind::linear_input_gradient:
    case OperationKind::linear_weight_gradient:
    case OperationKind::grouped_linear:
    case OperationKind::grouped_linear_input_gradient:
    case OperationKind::grouped_linear_weight_gradient:
      return Flops(2 * gemm.m * gemm.n * gemm.k * gemm.groups);
    case OperationKind::attention:
    case OperationKind::attention_step:
    case OperationKind::attention_gradient:
    case OperationKind::attention_gradient_step: {
      const double scores = core.batch * core.heads * core.queries * core.keys;
      const double passes = operation.phase == Phase::forward ? 2 : 4;
      return Flops(passes * scores * (core.query_head_dim + core.value_head_dim));
    }
    default:
      return Flops(0);
  }
}

}  // namespace trainyard
