// Sends and receives between stages. With sequence parallelism a rank sends what it holds, 1/t of
// the tokens; a stack with scattered sends does so without it and gathers on the other side
// (scatter/gather optimisation, Narayanan et al. 2021, §4.1).
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

bool scattered(const Lowering& lowering) {
  return lowering.training.stack.scattered_sends && !lowering.plan.sequence_parallel &&
         lowering.plan.tensor_parallel > 1;
}

Operation boundary(const Lowering& lowering, OperationKind kind, int buffer) {
  const bool gradient = buffer == lowering.gradient;
  const ProgramBuffer& whole = lowering.program.buffers[static_cast<std::size_t>(buffer)];
  return {
      .kind = kind,
      .stream = lowering.plan.overlap.pipeline ? ProgramStream::pipeline : ProgramStream::compute,
      .phase = gradient ? Phase::input_gradient : Phase::forward,
      .dtype = whole.dtype,
      .message = whole.bytes() / (scattered(lowering) ? lowering.plan.tensor_parallel : 1)};
}

// A backward pass that begins with forward work again needs no gradient for that; the engines hand
// it to the pass all the same, and begin when it is there.
std::vector<Operation> waited_for(Lowering& lowering, Operation receive) {
  const int received =
      lowering.activation("received gradient", lowering.local_tokens, lowering.model.hidden_size);
  lowering.program.buffers.back().scope = Scope::microbatch;
  receive.operands = {creates(received)};
  Operation wait{
      .kind = OperationKind::move, .phase = Phase::input_gradient, .dtype = lowering.dtype};
  wait.operands = {reads(received), creates(lowering.gradient)};
  wait.operands.front().frees = true;
  return {std::move(receive), std::move(wait)};
}

}  // namespace

std::vector<Operation> boundary_send(const Lowering& lowering, int buffer) {
  Operation send = boundary(lowering, OperationKind::send, buffer);
  send.operands = {reads(buffer)};
  send.operands.front().frees = true;
  return {send};
}

std::vector<Operation> boundary_receive(Lowering& lowering, int buffer) {
  Operation receive = boundary(lowering, OperationKind::receive, buffer);
  if (!scattered(lowering)) {
    if (buffer == lowering.gradient && recomputes(lowering.plan, RecomputeMode::full)) {
      return waited_for(lowering, receive);
    }
    receive.operands = {creates(buffer)};
    return {receive};
  }
  const int part = lowering.activation(
      "received part", lowering.tokens / lowering.plan.tensor_parallel, lowering.model.hidden_size);
  lowering.program.buffers.back().scope = Scope::stage;
  receive.operands = {creates(part)};
  Operation gather = receive;
  gather.kind = OperationKind::all_gather;
  gather.stream =
      lowering.plan.overlap.pipeline ? ProgramStream::tensor_parallel : ProgramStream::compute;
  gather.group = Group::tensor;
  gather.message = receive.message * lowering.plan.tensor_parallel;
  gather.operands = {reads(part), creates(buffer)};
  gather.operands.front().frees = true;
  return {receive, gather};
}

Turn turn(Lowering& lowering, int buffer, std::string_view name) {
  const int between = lowering.activation(name, lowering.local_tokens, lowering.model.hidden_size);
  lowering.program.buffers.back().scope = Scope::microbatch;
  const Phase phase = buffer == lowering.gradient ? Phase::input_gradient : Phase::forward;
  Turn turn;
  turn.out = turn.in = {.kind = OperationKind::move, .phase = phase, .dtype = lowering.dtype};
  turn.out.operands = {reads(buffer), creates(between)};
  turn.in.operands = {reads(between), creates(buffer)};
  turn.out.operands.front().frees = turn.in.operands.front().frees = true;
  return turn;
}

}  // namespace trainyard
