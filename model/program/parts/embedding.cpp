// The embedding: each rank looks up the tokens whose rows of the table it holds, the results are
// summed over the ranks, and learned positions are added.
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

Operation embedding_operation(const NetworkUnit& unit, OperationKind kind) {
  return {.kind = kind, .part = OperatorKind::embedding, .dtype = unit.lowering().dtype};
}

// Looks tokens up and sums over the ranks; with sequence parallelism each rank gets its own tokens.
void append_found(NetworkUnit& unit, int tokens, Parameter table, Operand into) {
  const std::int64_t width = unit.model().hidden_size;
  const bool scatters = unit.lowering().plan.sequence_parallel;
  const Operand found = scatters ? reads(unit.whole_activation("embedding rows", width)) : into;
  Operation lookup = embedding_operation(unit, OperationKind::embedding);
  lookup.operands = {reads(tokens), reads(table.weight), with_access(found, Access::create)};
  unit.add(Phase::forward, lookup);
  unit.reduced(Phase::forward, found, into);
}

void append_found_gradient(NetworkUnit& unit, int tokens, Parameter table, Operand gradient) {
  const Operand whole = unit.gathered(Phase::input_gradient, gradient, "embedding output gradient");
  Operation scatter_add = embedding_operation(unit, OperationKind::embedding_gradient);
  scatter_add.operands = {reads(tokens), whole, updates(table.gradient)};
  unit.add(Phase::input_gradient, scatter_add);
}

void append_positions(NetworkUnit& unit, Parameter rows, Operand sum, Operand output) {
  Operation add = embedding_operation(unit, OperationKind::positions);
  add.operands = {sum, reads(rows.weight), with_access(output, Access::create)};
  unit.add(Phase::forward, add);
}

// Appends dropout and its gradient; returns the gradient of its input.
Operand append_dropout(NetworkUnit& unit, Operand input) {
  const int mask = unit.dropout_mask("embedding dropout mask");
  Operation drop = embedding_operation(unit, OperationKind::dropout);
  drop.operands = {input, creates(unit.lowering().hidden), creates(mask)};
  unit.add(Phase::forward, drop);
  const Operand gradient = reads(unit.local_activation("embedding sum gradient"));
  Operation back = embedding_operation(unit, OperationKind::dropout_gradient);
  back.operands = {reads(unit.lowering().gradient), reads(mask),
                   with_access(gradient, Access::create)};
  unit.add(Phase::input_gradient, back);
  return gradient;
}

}  // namespace

Parameter vocabulary_table(NetworkUnit& unit, bool head, SharedEnd end) {
  const Lowering& lowering = unit.lowering();
  const Segment vocabulary =
      split(lowering, padded_vocabulary(lowering.model.vocabulary, lowering.plan.tensor_parallel));
  Matrix matrix{"embedding table", "embedding table gradient", part_of(vocabulary),
                lowering.model.hidden_size, Cut{CutAxis::rows, {vocabulary}}};
  if (head) {
    matrix.name = "head weight";
    matrix.gradient_name = "head weight gradient";
  }
  return unit.parameter(matrix, PartialGradient::none, end);
}

int token_buffer(NetworkUnit& unit, std::string_view name, int ahead) {
  ProgramBuffer buffer{.name = name, .role = BufferRole::data, .scope = Scope::microbatch};
  buffer.rows = unit.lowering().tokens;
  buffer.columns = 1;
  buffer.dtype = Dtype::fp32;
  buffer.element_bytes = 4;
  buffer.ahead = ahead;
  return unit.lowering().add(buffer);
}

void append_lookup(NetworkUnit& unit, Parameter table, const Lookup& lookup) {
  const int tokens = token_buffer(unit, "tokens", lookup.ahead);
  append_found(unit, tokens, table, lookup.into);
  append_found_gradient(unit, tokens, table, lookup.gradient);
}

void add_embedding(NetworkUnit& unit, Parameter table) {
  const bool positions = unit.model().learned_positions;
  const Operand stream = reads(unit.lowering().hidden);
  const Operand output = unit.drops() ? reads(unit.local_activation("embedding output")) : stream;
  const Operand sum = positions ? reads(unit.local_activation("embedding sum")) : output;
  const int tokens = token_buffer(unit, "tokens", 0);
  Parameter rows;
  append_found(unit, tokens, table, sum);
  if (positions) {
    rows = unit.replicated({"position table", "position table gradient",
                            unit.lowering().training.sequence_length, unit.model().hidden_size});
    append_positions(unit, rows, sum, output);
  }
  const Operand gradient =
      unit.drops() ? append_dropout(unit, output) : reads(unit.lowering().gradient);

  append_found_gradient(unit, tokens, table, gradient);
  if (!positions) return;
  Operation add_gradient = embedding_operation(unit, OperationKind::positions_gradient);
  add_gradient.operands = {gradient, updates(rows.gradient)};
  unit.add(Phase::input_gradient, add_gradient);
}

}  // namespace trainyard
