// The dense MLP half of a layer: norm, up projection (gate and up side by side when gated),
// activation, down projection, sum. Also the pieces of an MLP that experts share.
#include "model/program/parts/mlp.h"

#include <algorithm>

#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

constexpr MlpNames kMlp = {
    .up_part = OperatorKind::mlp_up,
    .activation_part = OperatorKind::mlp_activation,
    .down_part = OperatorKind::mlp_down,
    .up_weight = "mlp up weight",
    .up_weight_gradient = "mlp up weight gradient",
    .up_bias = "mlp up bias",
    .up_bias_gradient = "mlp up bias gradient",
    .down_weight = "mlp down weight",
    .down_weight_gradient = "mlp down weight gradient",
    .up = "mlp up",
    .up_gradient = "mlp up gradient",
    .product = "mlp product",
    .product_gradient = "mlp product gradient",
};
constexpr NormNames kMlpNormNames = {"mlp norm scale", "mlp norm scale gradient", "mlp norm shift",
                                     "mlp norm shift gradient"};

Operation activation_operation(const NetworkUnit& unit, const MlpPart& mlp, OperationKind kind) {
  return {.kind = kind, .part = mlp.names.activation_part, .dtype = unit.lowering().dtype};
}

LinearPart up_projection(NetworkUnit& unit, const MlpNames& names, const MlpShape& shape) {
  const Transformer& model = unit.model();
  const std::int64_t matrices = std::max(1, shape.experts);
  Cut cut{CutAxis::rows, {}, shape.experts};
  for (int i = 0; i < (model.gated_mlp ? 2 : 1); ++i) cut.segments.push_back(shape.ffn);
  const std::int64_t rows = part_of(shape.ffn) * static_cast<std::int64_t>(cut.segments.size());
  LinearPart linear{.part = names.up_part,
                    .shape = {.m = shape.rows,
                              .n = static_cast<double>(rows),
                              .k = static_cast<double>(model.hidden_size),
                              .groups = static_cast<double>(matrices)},
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {unit.parameter(
      {names.up_weight, names.up_weight_gradient, rows * matrices, model.hidden_size, cut},
      PartialGradient::none)};
  if (model.biases) {
    linear.biases = {unit.parameter(
        {names.up_bias, names.up_bias_gradient, rows * matrices, 1, cut}, PartialGradient::none)};
  }
  return linear;
}

LinearPart down_projection(NetworkUnit& unit, const MlpNames& names, const MlpShape& shape) {
  const std::int64_t hidden = unit.model().hidden_size;
  const std::int64_t matrices = std::max(1, shape.experts);
  const std::int64_t columns = part_of(shape.ffn);
  LinearPart linear{.part = names.down_part,
                    .shape = {.m = shape.rows,
                              .n = static_cast<double>(hidden),
                              .k = static_cast<double>(columns),
                              .groups = static_cast<double>(matrices)},
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {
      unit.parameter({names.down_weight, names.down_weight_gradient, hidden * matrices, columns,
                      Cut{CutAxis::columns, {shape.ffn}, shape.experts}},
                     PartialGradient::none)};
  return linear;
}

}  // namespace

Branch mlp_branch(NetworkUnit& unit, const LayerMiddle& middle) {
  const Lowering& lowering = unit.lowering();
  return {.names =
              {
                  .input = "mlp input",
                  .gathered = "mlp gathered",
                  .partial = "mlp partial",
                  .branch = "mlp branch",
                  .mask = "mlp dropout mask",
                  .branch_gradient = "mlp branch gradient",
                  .output_gradient = "mlp output gradient",
                  .inner_gradient = kMlp.product_gradient,
                  .regathered = "mlp regathered",
                  .input_gradient = "mlp input gradient",
                  .norm_gradient = "mlp norm gradient",
              },
          .norm = make_norm(unit, OperatorKind::mlp_norm, kMlpNormNames),
          .residual = OperatorKind::mlp_residual,
          .stream = reads(middle.stream),
          .next = reads(lowering.hidden, 1),
          .stream_gradient = reads(middle.gradient),
          .next_gradient = reads(lowering.gradient, 1)};
}

Parameter mlp_bias(NetworkUnit& unit) {
  return unit.replicated({"mlp down bias", "mlp down bias gradient", unit.model().hidden_size});
}

MlpPart make_mlp(NetworkUnit& unit, const MlpNames& names, const MlpShape& shape) {
  return {.names = names,
          .up = up_projection(unit, names, shape),
          .down = down_projection(unit, names, shape)};
}

std::int64_t up_width(const MlpPart& mlp) { return static_cast<std::int64_t>(mlp.up.shape.n); }
std::int64_t product_width(const MlpPart& mlp) {
  return static_cast<std::int64_t>(mlp.down.shape.k);
}

void append_activation(NetworkUnit& unit, MlpPart& mlp) {
  Operation activation = activation_operation(unit, mlp, OperationKind::activation);
  activation.operands = {reads(mlp.up_output)};
  if (mlp.gates >= 0) activation.operands.push_back(reads(mlp.gates));
  activation.operands.push_back(creates(mlp.product));
  unit.add(Phase::forward, activation);
  const bool keeps_cast = unit.lowering().training.stack.quantised_activation_input;
  mlp.saved_up =
      keeps_cast ? cast_input(unit, mlp.names.activation_part, mlp.up_output) : mlp.up_output;
}

void append_activation_gradient(NetworkUnit& unit, const MlpPart& mlp, int product_gradient,
                                int up_gradient, int gate_gradient) {
  Operation gradient = activation_operation(unit, mlp, OperationKind::activation_gradient);
  gradient.operands = {reads(mlp.saved_up), reads(product_gradient)};
  if (mlp.gates >= 0) gradient.operands.push_back(reads(mlp.gates));
  gradient.operands.push_back(creates(up_gradient));
  if (mlp.gates >= 0) gradient.operands.push_back(creates(gate_gradient));
  unit.add(Phase::input_gradient, gradient);
}

DenseMlp append_mlp(NetworkUnit& unit, const LayerMiddle& middle) {
  const Lowering& lowering = unit.lowering();
  DenseMlp half{.branch = mlp_branch(unit, middle)};
  half.mlp = make_mlp(unit, kMlp,
                      {.ffn = split(lowering, lowering.model.ffn_size),
                       .rows = static_cast<double>(lowering.tokens)});
  half.branch.first = half.mlp.up;
  half.branch.last = half.mlp.down;
  if (unit.model().biases) half.branch.bias = mlp_bias(unit);
  half.mlp.up_output = unit.whole_activation(kMlp.up, up_width(half.mlp));
  half.branch.firsts = {half.mlp.up_output};
  begin_branch(unit, half.branch);
  half.mlp.product = unit.whole_activation(kMlp.product, product_width(half.mlp));
  half.branch.inner = half.mlp.product;
  append_activation(unit, half.mlp);
  end_branch(unit, half.branch);
  return half;
}

void append_mlp_gradient(NetworkUnit& unit, const DenseMlp& half) {
  const int product_gradient = begin_branch_gradient(unit, half.branch);
  const int up_gradient = unit.whole_activation(kMlp.up_gradient, up_width(half.mlp));
  append_activation_gradient(unit, half.mlp, product_gradient, up_gradient, -1);
  end_branch_gradient(unit, half.branch, {reads(up_gradient)});
}

}  // namespace trainyard
