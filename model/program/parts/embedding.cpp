// The embedding: a rank looks up the tokens whose rows it holds, the sum over the ranks is the
// whole, learned positions are added to it.
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

int token_buffer(NetworkUnit& unit) {
  ProgramBuffer buffer{.name = "tokens", .role = BufferRole::data, .scope = Scope::microbatch};
  buffer.rows = unit.lowering().tokens;
  buffer.columns = 1;
  buffer.dtype = Dtype::fp32;
  buffer.element_bytes = 4;
  return unit.lowering().add(buffer);
}

Operation embedding_operation(const NetworkUnit& unit, OperationKind kind) {
  return {.kind = kind, .part = OperatorKind::embedding, .dtype = unit.lowering().dtype};
}

}  // namespace

Parameter vocabulary_table(NetworkUnit& unit, bool head) {
  const Lowering& lowering = unit.lowering();
  const Segment vocabulary =
      split(lowering, padded_vocabulary(lowering.model.vocabulary, lowering.plan.tensor_parallel));
  Matrix matrix{"embedding table", "embedding table gradient", part_of(vocabulary),
                lowering.model.hidden_size, Cut{CutAxis::rows, {vocabulary}}};
  if (head) {
    matrix.name = "head weight";
    matrix.gradient_name = "head weight gradient";
  }
  return unit.parameter(matrix, PartialGradient::none);
}

void add_embedding(NetworkUnit& unit, Parameter table) {
  const Operand stream = reads(unit.lowering().hidden);
  const Operand gradient = reads(unit.lowering().gradient);
  const bool positions = unit.model().learned_positions;
  const bool scatters = unit.lowering().plan.sequence_parallel;
  const int tokens = token_buffer(unit);
  const std::int64_t width = unit.model().hidden_size;

  const Operand found =
      positions || scatters ? reads(unit.whole_activation("embedding rows", width)) : stream;
  Operation lookup = embedding_operation(unit, OperationKind::embedding);
  lookup.operands = {reads(tokens), reads(table.weight), with_access(found, Access::create)};
  unit.add(Phase::forward, lookup);
  const Operand local =
      positions && scatters ? reads(unit.local_activation("embedding sum")) : stream;
  const Operand sum = unit.reduced(Phase::forward, found, local);

  const Operand whole = unit.gathered(Phase::input_gradient, gradient, "embedding output gradient");
  Operation scatter_add = embedding_operation(unit, OperationKind::embedding_gradient);
  scatter_add.operands = {reads(tokens), whole, updates(table.gradient)};
  unit.add(Phase::input_gradient, scatter_add);
  if (!positions) return;

  const Parameter rows = unit.replicated({"position table", "position table gradient",
                                          unit.lowering().training.sequence_length, width});
  Operation add = embedding_operation(unit, OperationKind::positions);
  add.operands = {with_access(sum, Access::read), reads(rows.weight),
                  with_access(stream, Access::create)};
  unit.add(Phase::forward, add);
  Operation add_gradient = embedding_operation(unit, OperationKind::positions_gradient);
  add_gradient.operands = {gradient, updates(rows.gradient)};
  unit.add(Phase::input_gradient, add_gradient);
}

}  // namespace trainyard
