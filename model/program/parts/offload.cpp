#include "model/program/parts/offload.h"

#include <set>
#include <utility>

#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

ProgramBuffer& buffer_in(Lowering& lowering, int buffer) {
  return lowering.program.buffers[static_cast<std::size_t>(buffer)];
}
const ProgramBuffer& buffer_in(const Lowering& lowering, int buffer) {
  return lowering.program.buffers[static_cast<std::size_t>(buffer)];
}

// What the layer makes, and its input.
std::set<int> made_forward(const Lowering& lowering, const NetworkUnit& unit) {
  std::set<int> made = {lowering.hidden};
  for (const Operation& operation : unit.forward()) {
    for (const Operand& operand : operation.operands) {
      if (operand.access == Access::create && operand.ahead == 0) made.insert(operand.buffer);
    }
  }
  return made;
}

// Of these, what backward reads before it is made again.
std::vector<int> kept_for_backward(const Lowering& lowering, const NetworkUnit& unit) {
  const std::set<int> made = made_forward(lowering, unit);
  std::vector<int> kept;
  std::set<int> seen;
  for (const Operation& operation : unit.backward()) {
    for (const Operand& operand : operation.operands) {
      if (operand.ahead > 0 || !seen.insert(operand.buffer).second) continue;
      if (operand.access != Access::create && made.contains(operand.buffer)) {
        kept.push_back(operand.buffer);
      }
    }
  }
  return kept;
}

int outside(Lowering& lowering, int buffer, OffloadTarget target) {
  ProgramBuffer copy = buffer_in(lowering, buffer);
  copy.away = target;
  return lowering.add(copy);
}

Operation copying(ProgramStream stream, Phase phase, Dtype dtype) {
  return {.kind = OperationKind::copy, .stream = stream, .phase = phase, .dtype = dtype};
}

// Of a gradient or a weight, what the host holds of it: this rank's part.
int host_part(Lowering& lowering, int held, const Sharing& sharing) {
  ProgramBuffer part = buffer_in(lowering, held);
  part.away = OffloadTarget::host;
  if (part.part_of < 0 && sharing.shards > 1) {
    part.rows = (part.rows * part.columns + sharing.shards - 1) / sharing.shards;
    part.columns = 1;
    part.part_of = held;
    part.among = sharing.shard;
  }
  return lowering.add(part);
}

// Between the device's whole operands and the host's parts of them.
Operation crossing(const Lowering& lowering, bool experts, bool parts) {
  Operation copy = copying(ProgramStream::compute, Phase::update, Dtype::fp32);
  const Sharing sharing = sharing_of(lowering, experts);
  if (parts || sharing.shards == 1) return copy;
  copy.shards = sharing.shards;
  copy.group = sharing.shard;
  return copy;
}

}  // namespace

bool sends_activations_away(const Plan& plan, int local_layer) {
  const Offload& offload = plan.offload;
  return offload.activations != OffloadTarget::none &&
         (offload.activation_layers == 0 || local_layer < offload.activation_layers);
}

ActivationCopies activation_copies(Lowering& lowering, const NetworkUnit& unit) {
  ActivationCopies copies;
  copies.away = copying(ProgramStream::copy, Phase::forward, lowering.dtype);
  copies.back = copying(ProgramStream::fetch, Phase::input_gradient, lowering.dtype);
  const std::vector<int> kept = kept_for_backward(lowering, unit);
  std::vector<int> stored;
  for (const int buffer : kept) {
    stored.push_back(outside(lowering, buffer, lowering.plan.offload.activations));
    copies.away.message += buffer_in(lowering, buffer).bytes();
    copies.away.operands.push_back(reads(buffer));
  }
  for (const int buffer : stored) {
    copies.away.operands.push_back(creates(buffer));
    copies.back.operands.push_back(reads(buffer));
  }
  for (const int buffer : kept) copies.back.operands.push_back(creates(buffer));
  copies.back.message = copies.away.message;
  copies.awaited = stored.front();
  return copies;
}

Operation await(int buffer) {
  return {.kind = OperationKind::await, .dtype = Dtype::bf16, .operands = {reads(buffer)}};
}

bool updates_on_host(const Plan& plan) { return plan.offload.optimizer != OffloadTarget::none; }

std::vector<Parameter> on_host(Lowering& lowering, const std::vector<Parameter>& parameters) {
  std::vector<Parameter> host = parameters;
  if (!updates_on_host(lowering.plan)) return host;
  for (Parameter& parameter : host) {
    const Sharing sharing = sharing_of(lowering, parameter.expert);
    parameter.held_gradient = host_part(lowering, parameter.held_gradient, sharing);
    parameter.held_weight = host_part(lowering, parameter.held_weight, sharing);
  }
  return host;
}

std::vector<Operation> gradients_to_host(const Lowering& lowering,
                                         const std::vector<Parameter>& parameters,
                                         const std::vector<Parameter>& host) {
  std::vector<Operation> list;
  if (!updates_on_host(lowering.plan)) return list;
  for (const bool experts : {false, true}) {
    const std::vector<Parameter> from = parameters_of(parameters, experts);
    const std::vector<Parameter> into = parameters_of(host, experts);
    if (from.empty()) continue;
    Operation copy = crossing(lowering, experts, from.front().keeps_gradient_part());
    Operation clear{.kind = OperationKind::clear, .phase = Phase::update, .dtype = Dtype::fp32};
    for (std::size_t i = 0; i < from.size(); ++i) {
      copy.operands.push_back(reads(from[i].held_gradient));
      copy.message += buffer_in(lowering, into[i].held_gradient).bytes();
      clear.operands.push_back(updates(from[i].held_gradient));
    }
    for (const Parameter& parameter : into) {
      copy.operands.push_back(updates(parameter.held_gradient));
    }
    list.push_back(std::move(copy));
    list.push_back(std::move(clear));
  }
  return list;
}

std::vector<Operation> weights_from_host(const Lowering& lowering,
                                         const std::vector<Parameter>& parameters,
                                         const std::vector<Parameter>& host) {
  std::vector<Operation> list;
  if (!updates_on_host(lowering.plan)) return list;
  for (const bool experts : {false, true}) {
    const std::vector<Parameter> into = parameters_of(parameters, experts);
    if (into.empty()) continue;
    Operation copy = crossing(lowering, experts, into.front().keeps_weight_part());
    for (const Parameter& parameter : parameters_of(host, experts)) {
      copy.operands.push_back(reads(parameter.held_weight));
      copy.message += buffer_in(lowering, parameter.held_weight).bytes();
    }
    for (const Parameter& parameter : into) {
      copy.operands.push_back(updates(parameter.held_weight));
    }
    list.push_back(std::move(copy));
  }
  return list;
}

}  // namespace trainyard
