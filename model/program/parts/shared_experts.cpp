// Shared experts: one dense MLP for every token, tensor-parallel like any other.
#include "model/program/parts/experts.h"

namespace trainyard {
namespace {

constexpr MlpNames kShared = {
    .up_part = OperatorKind::shared_up,
    .activation_part = OperatorKind::shared_activation,
    .down_part = OperatorKind::shared_down,
    .up_weight = "shared up weight",
    .up_weight_gradient = "shared up weight gradient",
    .up_bias = "shared up bias",
    .up_bias_gradient = "shared up bias gradient",
    .down_weight = "shared down weight",
    .down_weight_gradient = "shared down weight gradient",
    .up = "shared up",
    .up_gradient = "shared up gradient",
    .product = "shared product",
    .product_gradient = "shared product gradient",
};

}  // namespace

int append_shared_experts(NetworkUnit& unit, ExpertHalf& half) {
  const Transformer& model = unit.model();
  MlpPart& mlp = half.shared;
  mlp = make_mlp(
      unit, kShared,
      {.ffn = split(unit.lowering(), static_cast<std::int64_t>(shared_expert_width(model))),
       .rows = static_cast<double>(unit.lowering().tokens)});
  if (model.biases) half.branch.bias = mlp_bias(unit);
  mlp.up_output = unit.whole_activation(kShared.up, up_width(mlp));
  mlp.product = unit.whole_activation(kShared.product, product_width(mlp));
  const int partial = unit.whole_activation("shared partial", model.hidden_size);
  const GemmInput input =
      gathered_input(unit, mlp.up.part, half.branch.input, half.branch.names.gathered);
  keep_input(unit, input, half.branch);
  append_linear(unit, mlp.up, input.read, {mlp.up_output});
  append_activation(unit, mlp);
  mlp.saved_product = cast_input(unit, mlp.down.part, mlp.product);
  append_linear(unit, mlp.down, reads(mlp.saved_product), {partial});
  return unit.reduced(Phase::forward, partial, "shared branch");
}

int append_shared_experts_gradient(NetworkUnit& unit, const ExpertHalf& half,
                                   Operand branch_gradient) {
  const MlpPart& mlp = half.shared;
  const BranchNames& names = half.branch.names;
  const Operand whole =
      gathered_gradient(unit, mlp.down.part, branch_gradient, names.output_gradient);
  const int product_gradient = unit.whole_activation(kShared.product_gradient, product_width(mlp));
  append_input_gradient(unit, mlp.down, {whole}, creates(product_gradient));
  append_weight_gradient(unit, mlp.down, reads(mlp.saved_product), {whole});
  const int up_gradient = unit.whole_activation(kShared.up_gradient, up_width(mlp));
  append_activation_gradient(unit, mlp, product_gradient, up_gradient, -1);
  const std::vector<Operand> cast = cast_gradients(unit, mlp.up.part, {reads(up_gradient)});
  const Operand input = branch_input_again(unit, half.branch);
  const int partial = unit.whole_activation(names.input_gradient, unit.model().hidden_size);
  append_input_gradient(unit, mlp.up, cast, creates(partial));
  const int reduced = unit.reduced(Phase::input_gradient, partial, "shared input gradient");
  append_weight_gradient(unit, mlp.up, input, cast);
  return reduced;
}

}  // namespace trainyard
