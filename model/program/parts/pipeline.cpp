// Sends and receives between stages. With sequence parallelism a rank sends what it holds, 1/t of
// the tokens. Without it a stack with scattered sends also sends 1/t, and gathers on the other side
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
  const ProgramBuffer& whole = lowering.program.buffer(buffer);
  return {
      .kind = kind,
      .stream = lowering.plan.overlap.pipeline ? ProgramStream::pipeline : ProgramStream::compute,
      .phase = gradient ? Phase::input_gradient : Phase::forward,
      .dtype = whole.dtype,
      .message = whole.bytes() / (scattered(lowering) ? lowering.plan.tensor_parallel : 1)};
}

// How long the engine of the stack holds what is sent.
Hold held_by_sender(const Lowering& lowering, Phase phase) {
  const Stack& stack = lowering.training.stack;
  const bool forward = phase == Phase::forward;
  if (forward ? stack.pipeline_keeps_outputs : stack.pipeline_keeps_gradients) {
    return Hold::to_the_end;
  }
  return forward && stack.pipeline_receive_buffers ? Hold::until_backward : Hold::until_freed;
}

Operand handed_over(const Lowering& lowering, Phase phase, int buffer) {
  Operand sent = reads(buffer);
  sent.frees = true;
  sent.hold = held_by_sender(lowering, phase);
  return sent;
}

// Where a chunk takes in what comes.
Operand taken_in(const Lowering& lowering, int buffer) {
  Operand received = creates(buffer);
  if (lowering.training.stack.pipeline_receive_buffers) received.hold = Hold::throughout;
  return received;
}

// A buffer for each micro-batch: it holds a message until the pass takes it or it is sent.
int held_activation(Lowering& lowering, std::string_view name) {
  const int held = lowering.activation(name, lowering.local_tokens, lowering.model.hidden_size);
  lowering.program.buffers.back().scope = Scope::microbatch;
  return held;
}

Operation moved(const Lowering& lowering, Phase phase, int from, int to) {
  Operation move{.kind = OperationKind::move, .phase = phase, .dtype = lowering.dtype};
  move.operands = {reads(from), creates(to)};
  move.operands.front().frees = true;
  return move;
}

std::vector<Operation> received_into(Lowering& lowering, Operation receive, int buffer) {
  if (!scattered(lowering)) {
    receive.operands = {taken_in(lowering, buffer)};
    return {std::move(receive)};
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
  return {std::move(receive), std::move(gather)};
}

}  // namespace

std::vector<Operation> boundary_send(const Lowering& lowering, int buffer) {
  Operation send = boundary(lowering, OperationKind::send, buffer);
  send.operands = {handed_over(lowering, send.phase, buffer)};
  return {send};
}

std::vector<Operation> boundary_receive(Lowering& lowering, int buffer) {
  Operation receive = boundary(lowering, OperationKind::receive, buffer);
  // A backward pass that begins with recomputation does not need the gradient for that. Pipeline
  // engines receive it before they start the pass all the same.
  if (!scattered(lowering) && buffer == lowering.gradient &&
      recomputes(lowering.plan, RecomputeMode::full)) {
    return receive_ahead(lowering);
  }
  return received_into(lowering, std::move(receive), buffer);
}

std::vector<Operation> receive_ahead(Lowering& lowering) {
  const int received = held_activation(lowering, "received gradient");
  Operation receive = boundary(lowering, OperationKind::receive, lowering.gradient);
  std::vector<Operation> list = received_into(lowering, std::move(receive), received);
  list.push_back(moved(lowering, Phase::input_gradient, received, lowering.gradient));
  return list;
}

std::vector<Operation> send_behind(Lowering& lowering) {
  const int held = held_activation(lowering, "stream to send");
  Operation send = boundary(lowering, OperationKind::send, lowering.hidden);
  send.operands = {handed_over(lowering, send.phase, held)};
  return {moved(lowering, Phase::forward, lowering.hidden, held), std::move(send)};
}

Turn turn(Lowering& lowering, int buffer, std::string_view name) {
  const int between = held_activation(lowering, name);
  const Phase phase = buffer == lowering.gradient ? Phase::input_gradient : Phase::forward;
  Turn turn;
  turn.out = moved(lowering, phase, buffer, between);
  turn.in = moved(lowering, phase, between, buffer);
  turn.in.operands.back() = taken_in(lowering, buffer);
  return turn;
}

}  // namespace trainyard
