#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

void append_weights(const LinearPart& linear, std::vector<Operand>& operands) {
  for (const Parameter& weight : linear.weights) operands.push_back(reads(weight.weight));
}

Operation linear_operation(const NetworkUnit& unit, OperationKind kind, const LinearPart& linear) {
  return {.kind = kind,
          .part = linear.part,
          .dtype = linear.dtype,
          .gemm = linear.shape,
          .cast = weight_cast(unit, linear.dtype)};
}

}  // namespace

NormPart make_norm(NetworkUnit& unit, OperatorKind part, const NormNames& names, int prediction) {
  NormPart norm{.part = part};
  Matrix scale{names.scale, names.scale_gradient, unit.model().hidden_size};
  scale.prediction = prediction;
  Matrix shift = scale;
  shift.name = names.shift;
  shift.gradient_name = names.shift_gradient;
  norm.scale = unit.replicated(scale);
  if (unit.model().norm == Norm::layer_norm) norm.shift = unit.replicated(shift);
  return norm;
}

void append_norm(NetworkUnit& unit, const NormPart& norm, Operand input, int output) {
  Operation op{.kind = OperationKind::norm, .part = norm.part, .dtype = unit.lowering().dtype};
  op.operands = {with_access(input, Access::read), reads(norm.scale.weight)};
  if (norm.shift.exists()) op.operands.push_back(reads(norm.shift.weight));
  op.operands.push_back(creates(output));
  unit.add(Phase::forward, op);
}

void append_norm_gradient(NetworkUnit& unit, const NormPart& norm, Operand input,
                          int output_gradient, Operand input_gradient) {
  Operation op{
      .kind = OperationKind::norm_gradient, .part = norm.part, .dtype = unit.lowering().dtype};
  op.operands = {with_access(input, Access::read), reads(output_gradient), reads(norm.scale.weight),
                 with_access(input_gradient, Access::create), updates(norm.scale.gradient)};
  if (norm.shift.exists()) op.operands.push_back(updates(norm.shift.gradient));
  unit.add(Phase::input_gradient, op);
}

GemmShape gemm_shape(const Lowering& lowering, std::int64_t outputs, std::int64_t inputs) {
  return {.m = static_cast<double>(lowering.tokens),
          .n = static_cast<double>(outputs),
          .k = static_cast<double>(inputs)};
}

void append_linear(NetworkUnit& unit, const LinearPart& linear, Operand input,
                   const std::vector<int>& outputs) {
  Operation op = linear_operation(unit, OperationKind::linear, linear);
  op.operands = {with_access(input, Access::read)};
  append_weights(linear, op.operands);
  for (const Parameter& bias : linear.biases) op.operands.push_back(reads(bias.weight));
  for (const int output : outputs) op.operands.push_back(creates(output));
  unit.add(Phase::forward, op);
}

void append_input_gradient(NetworkUnit& unit, const LinearPart& linear,
                           const std::vector<Operand>& output_gradients, Operand input_gradient) {
  Operation op = linear_operation(unit, OperationKind::linear_input_gradient, linear);
  op.operands = output_gradients;
  append_weights(linear, op.operands);
  op.operands.push_back(input_gradient);
  unit.add(Phase::input_gradient, op);
}

void append_weight_gradient(NetworkUnit& unit, const LinearPart& linear, Operand input,
                            const std::vector<Operand>& output_gradients) {
  Operation op = linear_operation(unit, OperationKind::linear_weight_gradient, linear);
  op.operands = {with_access(input, Access::read)};
  op.operands.insert(op.operands.end(), output_gradients.begin(), output_gradients.end());
  for (const Parameter& weight : linear.weights) op.operands.push_back(updates(weight.gradient));
  for (const Parameter& bias : linear.biases) op.operands.push_back(updates(bias.gradient));
  unit.add(Phase::weight_gradient, op);
}

void keep_input(const NetworkUnit& unit, const GemmInput& input, Branch& branch) {
  const bool whole = unit.lowering().training.stack.keeps_gathered_inputs;
  branch.saved_input = whole ? input.read.buffer : input.saved;
}

Operand branch_input(NetworkUnit& unit, Branch& branch, OperatorKind part) {
  branch.input = unit.local_activation(branch.names.input);
  append_norm(unit, branch.norm, branch.stream, branch.input);
  const GemmInput input = gathered_input(unit, part, branch.input, branch.names.gathered);
  keep_input(unit, input, branch);
  return input.read;
}

Operand branch_input_again(NetworkUnit& unit, const Branch& branch) {
  if (unit.lowering().training.stack.keeps_gathered_inputs) return reads(branch.saved_input);
  return unit.gathered(Phase::weight_gradient, reads(branch.saved_input), branch.names.regathered);
}

void begin_branch(NetworkUnit& unit, Branch& branch) {
  const Operand input = branch_input(unit, branch, branch.first.part);
  append_linear(unit, branch.first, input, branch.firsts);
}

void end_branch(NetworkUnit& unit, Branch& branch) {
  const int partial = unit.whole_activation(branch.names.partial, unit.model().hidden_size);
  branch.saved_inner = cast_input(unit, branch.last.part, branch.inner);
  append_linear(unit, branch.last, reads(branch.saved_inner), {partial});
  append_residual(unit, branch, unit.reduced(Phase::forward, partial, branch.names.branch));
}

void append_residual(NetworkUnit& unit, Branch& branch, int addition) {
  Operation sum{
      .kind = OperationKind::residual, .part = branch.residual, .dtype = unit.lowering().dtype};
  sum.operands = {branch.stream, reads(addition)};
  if (branch.bias.exists()) sum.operands.push_back(reads(branch.bias.weight));
  sum.operands.push_back(with_access(branch.next, Access::create));
  if (unit.drops()) {
    branch.mask = unit.dropout_mask(branch.names.mask);
    sum.operands.push_back(creates(branch.mask));
  }
  unit.add(Phase::forward, sum);
}

Operand branch_gradient(NetworkUnit& unit, const Branch& branch) {
  if (branch.mask < 0) return branch.next_gradient;
  const Operand gradient = reads(unit.local_activation(branch.names.branch_gradient));
  Operation drop{.kind = OperationKind::dropout_gradient,
                 .part = branch.residual,
                 .dtype = unit.lowering().dtype};
  drop.operands = {branch.next_gradient, reads(branch.mask), with_access(gradient, Access::create)};
  if (branch.bias.exists()) drop.operands.push_back(updates(branch.bias.gradient));
  unit.add(Phase::input_gradient, drop);
  return gradient;
}

int begin_branch_gradient(NetworkUnit& unit, const Branch& branch) {
  const Operand whole = gathered_gradient(unit, branch.last.part, branch_gradient(unit, branch),
                                          branch.names.output_gradient);
  const auto width = static_cast<std::int64_t>(branch.last.shape.k);
  const int inner = unit.whole_activation(branch.names.inner_gradient, width);
  append_input_gradient(unit, branch.last, {whole}, creates(inner));
  append_weight_gradient(unit, branch.last, reads(branch.saved_inner), {whole});
  return inner;
}

void end_branch_gradient(NetworkUnit& unit, const Branch& branch,
                         const std::vector<Operand>& gradients) {
  const Operand whole = branch_input_again(unit, branch);
  const std::vector<Operand> cast = cast_gradients(unit, branch.first.part, gradients);
  const int partial = unit.whole_activation(branch.names.input_gradient, unit.model().hidden_size);
  append_input_gradient(unit, branch.first, cast, creates(partial));
  const int reduced = unit.reduced(Phase::input_gradient, partial, branch.names.input_gradient);
  append_weight_gradient(unit, branch.first, whole, cast);
  finish_branch_gradient(unit, branch, reduced);
}

void finish_branch_gradient(NetworkUnit& unit, const Branch& branch, int input_gradient) {
  const int through_norm = unit.local_activation(branch.names.norm_gradient);
  append_norm_gradient(unit, branch.norm, branch.stream, input_gradient, reads(through_norm));
  Operation sum{.kind = OperationKind::residual_gradient,
                .part = branch.residual,
                .dtype = unit.lowering().dtype};
  sum.operands = {branch.next_gradient, reads(through_norm),
                  with_access(branch.stream_gradient, Access::create)};
  if (branch.bias.exists() && branch.mask < 0) {
    sum.operands.push_back(updates(branch.bias.gradient));
  }
  unit.add(Phase::input_gradient, sum);
}

}  // namespace trainyard
