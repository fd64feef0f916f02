#include "model/program/parts/marks.h"

namespace trainyard {

ProgramBuffer mark(std::string_view name, BufferRole role) {
  ProgramBuffer mark{.name = name, .role = role, .scope = Scope::stage};
  mark.rows = mark.columns = 1;
  mark.dtype = Dtype::fp32;
  mark.element_bytes = 4;
  return mark;
}

Operation await(int buffer) {
  return {.kind = OperationKind::await, .dtype = Dtype::bf16, .operands = {reads(buffer)}};
}

Operation writes(int mark) {
  return {.kind = OperationKind::await, .dtype = Dtype::bf16, .operands = {updates(mark)}};
}

TransferTurn transfer_turn(Lowering& lowering, ProgramStream transfers) {
  const int ended = lowering.add(mark("transfer ended", BufferRole::scalar));
  TransferTurn turn{.ended = writes(ended), .wait = await(ended)};
  turn.ended.stream = transfers;
  return turn;
}

}  // namespace trainyard
