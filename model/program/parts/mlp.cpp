// The dense MLP half of a layer: norm, up projection (gate and up side by side when gated),
// activation, down projection, sum.
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

constexpr BranchNames kNames = {
    .input = "mlp input",
    .gathered = "mlp gathered",
    .partial = "mlp partial",
    .branch = "mlp branch",
    .mask = "mlp dropout mask",
    .branch_gradient = "mlp branch gradient",
    .output_gradient = "mlp output gradient",
    .inner_gradient = "mlp product gradient",
    .regathered = "mlp regathered",
    .input_gradient = "mlp input gradient",
    .norm_gradient = "mlp norm gradient",
};
constexpr NormNames kNormNames = {"mlp norm scale", "mlp norm scale gradient", "mlp norm shift",
                                  "mlp norm shift gradient"};

struct MlpWidths {
  Segment ffn;
  Cut up_cut;           // gate, then up
  std::int64_t up = 0;  // rows of the up projection on this rank
};

MlpWidths mlp_widths(const Lowering& lowering) {
  MlpWidths widths{.ffn = split(lowering, lowering.model.ffn_size), .up_cut = {CutAxis::rows, {}}};
  const int projections = lowering.model.gated_mlp ? 2 : 1;
  for (int i = 0; i < projections; ++i) widths.up_cut.segments.push_back(widths.ffn);
  widths.up = projections * part_of(widths.ffn);
  return widths;
}

LinearPart up_projection(NetworkUnit& unit, const MlpWidths& widths) {
  const std::int64_t hidden = unit.model().hidden_size;
  LinearPart linear{.part = OperatorKind::mlp_up,
                    .shape = gemm_shape(unit.lowering(), widths.up, hidden),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {
      unit.parameter({"mlp up weight", "mlp up weight gradient", widths.up, hidden, widths.up_cut},
                     PartialGradient::none)};
  if (unit.model().biases) {
    linear.biases = {
        unit.parameter({"mlp up bias", "mlp up bias gradient", widths.up, 1, widths.up_cut},
                       PartialGradient::none)};
  }
  return linear;
}

LinearPart down_projection(NetworkUnit& unit, const MlpWidths& widths) {
  const std::int64_t hidden = unit.model().hidden_size;
  const std::int64_t columns = part_of(widths.ffn);
  LinearPart linear{.part = OperatorKind::mlp_down,
                    .shape = gemm_shape(unit.lowering(), hidden, columns),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {unit.parameter({"mlp down weight", "mlp down weight gradient", hidden, columns,
                                    Cut{CutAxis::columns, {widths.ffn}}},
                                   PartialGradient::none)};
  return linear;
}

Operation activation_operation(const NetworkUnit& unit, OperationKind kind) {
  return {.kind = kind, .part = OperatorKind::mlp_activation, .dtype = unit.lowering().dtype};
}

}  // namespace

Branch append_mlp(NetworkUnit& unit, const LayerMiddle& middle) {
  const Lowering& lowering = unit.lowering();
  const MlpWidths widths = mlp_widths(lowering);
  Branch branch{.names = kNames,
                .norm = make_norm(unit, OperatorKind::mlp_norm, kNormNames),
                .first = up_projection(unit, widths),
                .last = down_projection(unit, widths),
                .residual = OperatorKind::mlp_residual,
                .stream = reads(middle.stream),
                .next = reads(lowering.hidden, 1),
                .stream_gradient = reads(middle.gradient),
                .next_gradient = reads(lowering.gradient, 1)};
  if (unit.model().biases) {
    branch.bias =
        unit.replicated({"mlp down bias", "mlp down bias gradient", unit.model().hidden_size});
  }
  const int up = unit.whole_activation("mlp up", widths.up);
  branch.firsts = {up};
  begin_branch(unit, branch);
  branch.inner = unit.whole_activation("mlp product", part_of(widths.ffn));
  Operation activation = activation_operation(unit, OperationKind::activation);
  activation.operands = {reads(up), creates(branch.inner)};
  unit.add(Phase::forward, activation);
  end_branch(unit, branch);
  return branch;
}

void append_mlp_gradient(NetworkUnit& unit, const Branch& branch) {
  const int product_gradient = begin_branch_gradient(unit, branch);
  const int up = branch.firsts.front();
  const int up_gradient =
      unit.whole_activation("mlp up gradient", static_cast<std::int64_t>(branch.first.shape.n));
  Operation gradient = activation_operation(unit, OperationKind::activation_gradient);
  gradient.operands = {reads(up), reads(product_gradient), creates(up_gradient)};
  unit.add(Phase::input_gradient, gradient);
  end_branch_gradient(unit, branch, {reads(up_gradient)});
}

void add_layer(NetworkUnit& unit, LayerKind kind, Repeats repeats) {
  const LayerMiddle middle{unit.local_activation("middle"),
                           unit.local_activation("middle gradient")};
  const AttentionHalf attention = append_attention(unit, kind, middle);
  const Branch mlp = append_mlp(unit, middle);
  if (repeats == Repeats::everything) unit.repeat_forward();
  append_mlp_gradient(unit, mlp);
  append_attention_gradient(unit, attention, repeats == Repeats::attention_core);
}

}  // namespace trainyard
