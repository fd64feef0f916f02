#include "model/program/parts/offload.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model/program/parts/marks.h"
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

// The buffers that the forward pass of the unit creates, and its inputs.
std::set<int> made_forward(const Lowering& lowering, const NetworkUnit& unit) {
  std::set<int> made = {lowering.hidden, lowering.embedded};
  for (const Operation& operation : unit.forward()) {
    for (const Operand& operand : operation.operands) {
      if (operand.access == Access::create && operand.ahead == 0) made.insert(operand.buffer);
    }
  }
  return made;
}

// Those of them that backward reads before it recomputes them.
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
  ProgramBuffer copy = lowering.program.buffer(buffer);
  copy.away = target;
  return lowering.add(copy);
}

Operation copying(ProgramStream stream, Phase phase, Dtype dtype) {
  return {.kind = OperationKind::copy, .stream = stream, .phase = phase, .dtype = dtype};
}

using OperationList = std::vector<Operation>;

void append_if_any(OperationList& list, Operation operation) {
  if (!operation.operands.empty()) list.push_back(std::move(operation));
}

int pass_mark(Lowering& lowering) {
  if (lowering.pass_begun < 0) {
    lowering.pass_begun = lowering.add(mark("pass begun", BufferRole::scalar));
  }
  return lowering.pass_begun;
}

int layer_mark(Lowering& lowering) {
  if (lowering.layer_begun < 0) {
    lowering.layer_begun = lowering.add(mark("last layer begun", BufferRole::scalar));
  }
  return lowering.layer_begun;
}

// A buffer at `target` for this rank's part of a held one; of the same size if that is not shared
// or is a part already.
ProgramBuffer part_of_whole(const Lowering& lowering, int held, const Sharing& sharing,
                            OffloadTarget target) {
  ProgramBuffer part = lowering.program.buffer(held);
  part.away = target;
  part.gathered = false;
  if (target == OffloadTarget::none) part.role = BufferRole::activation;
  if (part.part_of < 0 && sharing.shards > 1) {
    part.rows = (part.rows * part.columns + sharing.shards - 1) / sharing.shards;
    part.columns = 1;
    part.part_of = held;
    part.among = sharing.shard;
  }
  return part;
}

// Whether one of the phases completes the gradient of the parameter.
bool completed_in(const NetworkUnit& unit, const Parameter& parameter,
                  const std::vector<Phase>& phases) {
  const Phase phase = completing_phase(unit, parameter);
  return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

// The offloaded gradients that a unit brings or sends: not those that another unit with the same
// parameter moves.
std::vector<Parameter> moved_gradients(const NetworkUnit& unit, const std::vector<Phase>& phases,
                                       bool come) {
  std::vector<Parameter> moved = unit.used();
  std::erase_if(moved, [&](const Parameter& parameter) {
    const bool first_meets = come && !parameter.keeps_gradient_part();
    const SharedEnd other = first_meets ? SharedEnd::front : SharedEnd::back;
    return !parameter.gradient_away() || parameter.end == other ||
           !completed_in(unit, parameter, phases);
  });
  return moved;
}

constexpr Places kWeight = {&Parameter::held_weight, &Parameter::stored_weight};
constexpr Places kGradient = {&Parameter::held_gradient, &Parameter::stored_gradient};

// One copy of all of them to the buffers of a pass (`fetch`) or back (`copy`); empty for none.
OperationList carried(const Lowering& lowering, const std::vector<Parameter>& some, Places places,
                      ProgramStream stream, Phase phase) {
  if (some.empty()) return {};
  const bool comes = stream == ProgramStream::fetch;
  Operation copy = copying(stream, phase, lowering.dtype);
  for (const Parameter& parameter : some) {
    copy.message += lowering.program.buffer(parameter.*places.held).bytes();
    copy.operands.push_back(reads(parameter.*(comes ? places.stored : places.held)));
  }
  for (const Parameter& parameter : some) {
    copy.operands.push_back(comes ? creates(parameter.*places.held)
                                  : updates(parameter.*places.stored));
  }
  return {std::move(copy)};
}

bool uses(const std::vector<Operation>& operations, const Parameter& parameter) {
  return std::any_of(operations.begin(), operations.end(), [&](const Operation& operation) {
    return std::any_of(
        operation.operands.begin(), operation.operands.end(), [&](const Operand& operand) {
          return operand.buffer == parameter.held_gradient || operand.buffer == parameter.gradient;
        });
  });
}

}  // namespace

bool sends_activations_away(const Plan& plan, int local_layer) {
  const Offload& offload = plan.offload;
  return offload.activations != OffloadTarget::none &&
         (offload.activation_layers == 0 || local_layer < offload.activation_layers);
}

ActivationCopies activation_copies(Lowering& lowering, const NetworkUnit& unit, int stays) {
  ActivationCopies copies;
  copies.away = copying(ProgramStream::copy, Phase::forward, lowering.dtype);
  copies.back = copying(ProgramStream::fetch, Phase::input_gradient, lowering.dtype);
  std::vector<int> kept = kept_for_backward(lowering, unit);
  std::erase(kept, stays);
  std::vector<int> stored;
  for (const int buffer : kept) {
    stored.push_back(outside(lowering, buffer, lowering.plan.offload.activations));
    copies.away.message += lowering.program.buffer(buffer).bytes();
    copies.away.operands.push_back(reads(buffer));
  }
  for (const int buffer : stored) {
    copies.away.operands.push_back(creates(buffer));
    copies.back.operands.push_back(reads(buffer));
  }
  for (const int buffer : kept) copies.back.operands.push_back(creates(buffer));
  copies.back.message = copies.away.message;
  return copies;
}

bool keeps_weights_away(const Lowering& lowering) {
  return weights_target(lowering) != OffloadTarget::none;
}

bool keeps_gradients_away(const Plan& plan) {
  return plan.offload.gradients != OffloadTarget::none;
}

int units_ahead(const Lowering& lowering) {
  return lowering.plan.held_zero_stage() >= 3 && sharing_of(lowering, false).shards > 1 ? 2 : 1;
}

std::vector<Operation> weights_from_offload(const NetworkUnit& unit, Phase phase) {
  const Lowering& lowering = unit.lowering();
  std::vector<Parameter> some = unit.used();
  const SharedEnd has_it = phase == Phase::forward ? SharedEnd::back : SharedEnd::front;
  std::erase_if(some, [&](const Parameter& p) { return !p.weight_away() || p.end == has_it; });
  return carried(lowering, some, kWeight, ProgramStream::fetch, phase);
}

std::vector<Operation> gradients_from_offload(const NetworkUnit& unit,
                                              const std::vector<Phase>& phases) {
  return carried(unit.lowering(), moved_gradients(unit, phases, true), kGradient,
                 ProgramStream::fetch, phases.back());
}

std::vector<Operation> gradients_to_offload(const NetworkUnit& unit,
                                            const std::vector<Phase>& phases) {
  return carried(unit.lowering(), moved_gradients(unit, phases, false), kGradient,
                 ProgramStream::copy, phases.back());
}

std::vector<Operation> beside_unit(Lowering& lowering, std::vector<Operation> coming) {
  if (coming.empty()) return coming;
  if (lowering.begun < 0) lowering.begun = lowering.add(mark("begun", BufferRole::activation));
  const Operation begins{
      .kind = OperationKind::await, .dtype = Dtype::bf16, .operands = {creates(lowering.begun)}};
  for (Operation& operation : coming) operation.operands.push_back(reads(lowering.begun));
  coming.back().operands.back().frees = true;
  coming.insert(coming.begin(), begins);
  return coming;
}

std::vector<Operation> beside_pass(Lowering& lowering, std::vector<Operation> coming) {
  if (!coming.empty()) coming.front().operands.push_back(reads(pass_mark(lowering)));
  return coming;
}

Operation pass_begins(Lowering& lowering) { return writes(pass_mark(lowering)); }

std::vector<Operation> beside_last_layer(Lowering& lowering, std::vector<Operation> coming) {
  if (!coming.empty()) coming.front().operands.push_back(reads(layer_mark(lowering)));
  return coming;
}

Operation last_layer_begins(Lowering& lowering) { return writes(layer_mark(lowering)); }

std::vector<Operation> with_gradients_here(const Lowering& lowering,
                                           const std::vector<Parameter>& parameters,
                                           std::vector<Operation> operations) {
  Operation bring = copying(ProgramStream::compute, Phase::update, lowering.dtype);
  Operation send = bring;
  for (const Parameter& parameter : parameters) {
    if (!parameter.gradient_away() || !uses(operations, parameter)) continue;
    bring.message += lowering.program.buffer(parameter.held_gradient).bytes();
    bring.operands.push_back(reads(parameter.stored_gradient));
    send.operands.push_back(reads(parameter.held_gradient));
    send.operands.back().frees = true;
  }
  if (bring.operands.empty()) return operations;
  send.message = bring.message;
  for (const Parameter& parameter : parameters) {
    if (!parameter.gradient_away() || !uses(operations, parameter)) continue;
    bring.operands.push_back(creates(parameter.held_gradient));
    send.operands.push_back(updates(parameter.stored_gradient));
  }
  operations.insert(operations.begin(), std::move(bring));
  operations.push_back(std::move(send));
  return operations;
}

UpdateCrossing::UpdateCrossing(Lowering& lowering, const std::vector<Parameter>& parameters)
    : lowering_(lowering),
      parameters_(parameters),
      there_(parameters),
      on_host_(lowering.plan.offload.optimizer != OffloadTarget::none),
      weights_away_(keeps_weights_away(lowering)),
      gradients_away_(keeps_gradients_away(lowering.plan)) {
  for (Parameter& parameter : there_) {
    const Sharing sharing = sharing_of(lowering, parameter.expert);
    parameter.held_gradient = place(parameter.held_gradient, parameter.stored_gradient, sharing);
    parameter.held_weight = place(parameter.held_weight, parameter.stored_weight, sharing);
  }
}

// The buffer of a gradient or a weight at the place of the update: where it lies, if that is the
// same place, else a buffer for this rank's part.
int UpdateCrossing::place(int held, int stored, const Sharing& sharing) {
  const bool away = stored != held;
  if (away == on_host_) return stored;
  const OffloadTarget there = on_host_ ? OffloadTarget::host : OffloadTarget::none;
  return lowering_.add(part_of_whole(lowering_, held, sharing, there));
}

Operation UpdateCrossing::crossing(bool experts, bool cuts) const {
  Operation copy = copying(ProgramStream::compute, Phase::update, Dtype::fp32);
  const Sharing sharing = sharing_of(lowering_, experts);
  if (!cuts || sharing.shards == 1) return copy;
  copy.shards = sharing.shards;
  copy.group = sharing.shard;
  return copy;
}

// A copy of all weights or all gradients to the place of the update; no operands if there are none.
Operation UpdateCrossing::to_update(bool experts, Places places) const {
  const std::vector<Parameter> kept = parameters_of(parameters_, experts);
  const std::vector<Parameter> there = parameters_of(there_, experts);
  if (kept.empty()) return {};
  Operation copy = crossing(experts, !is_part(lowering_, kept.front().*places.stored));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    copy.operands.push_back(reads(kept[i].*places.stored));
    copy.message += lowering_.program.buffer(there[i].*places.held).bytes();
  }
  for (const Parameter& parameter : there) {
    const int held = parameter.*places.held;
    copy.operands.push_back(on_host_ ? updates(held) : creates(held));
  }
  return copy;
}

// Copies gradients to the place of the update. `clears`: then clears the buffers where they lay.
void UpdateCrossing::append_gradients(OperationList& list, bool clears) const {
  for (const bool experts : {false, true}) {
    append_if_any(list, to_update(experts, kGradient));
    Operation clear{.kind = OperationKind::clear, .phase = Phase::update, .dtype = Dtype::fp32};
    for (const Parameter& parameter : parameters_of(parameters_, experts)) {
      clear.operands.push_back(updates(parameter.stored_gradient));
    }
    if (clears) append_if_any(list, std::move(clear));
  }
}

// Copies weights from where they lie to the place of the update.
void UpdateCrossing::append_weights(OperationList& list) const {
  for (const bool experts : {false, true}) append_if_any(list, to_update(experts, kWeight));
}

// Copies updated weights back, whole or in parts, as they lie.
void UpdateCrossing::append_return(OperationList& list, bool experts) const {
  const std::vector<Parameter> into = parameters_of(parameters_, experts);
  const std::vector<Parameter> from = parameters_of(there_, experts);
  if (into.empty()) return;
  Operation copy = crossing(experts, !is_part(lowering_, into.front().stored_weight));
  for (const Parameter& parameter : from) {
    copy.operands.push_back(reads(parameter.held_weight));
    copy.message += lowering_.program.buffer(parameter.held_weight).bytes();
  }
  for (const Parameter& parameter : into) copy.operands.push_back(updates(parameter.stored_weight));
  list.push_back(std::move(copy));
}

// For weights that lie whole outside the device while each rank updated only its part: gathers them
// on the device and copies them out.
void UpdateCrossing::append_spread(OperationList& list, bool experts) const {
  const Sharing sharing = sharing_of(lowering_, experts);
  const std::vector<Parameter> all = parameters_of(parameters_, experts);
  const std::vector<Parameter> updated = parameters_of(there_, experts);
  Operation bring = crossing(experts, true);
  Operation gather{.kind = OperationKind::all_gather,
                   .stream = ProgramStream::data_parallel,
                   .phase = Phase::update,
                   .dtype = lowering_.dtype,
                   .group = sharing.shard,
                   .shards = sharing.shards};
  Operation send = crossing(experts, false);
  std::vector<int> parts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    int part = updated[i].held_weight;
    if (on_host_) {
      bring.operands.push_back(reads(part));
      part =
          lowering_.add(part_of_whole(lowering_, all[i].held_weight, sharing, OffloadTarget::none));
    }
    parts.push_back(part);
    bring.message += lowering_.program.buffer(part).bytes();
    gather.message += lowering_.program.buffer(all[i].held_weight).bytes();
    gather.operands.push_back(reads(part));
    send.operands.push_back(reads(all[i].held_weight));
  }
  send.message = gather.message;
  for (const int part : parts) bring.operands.push_back(creates(part));
  for (const Parameter& parameter : all) {
    gather.operands.push_back(creates(parameter.held_weight));
    send.operands.push_back(updates(parameter.stored_weight));
  }
  if (on_host_) list.push_back(std::move(bring));
  list.push_back(std::move(gather));
  list.push_back(std::move(send));
}

std::vector<Operation> UpdateCrossing::for_norm() const {
  OperationList list;
  if (gradients_away_ != on_host_) append_gradients(list, on_host_);
  return list;
}

std::vector<Operation> UpdateCrossing::for_update() const {
  OperationList list;
  if (gradients_away_ && !on_host_) append_gradients(list, true);
  if (weights_away_ && !on_host_) append_weights(list);
  return list;
}

std::vector<Operation> UpdateCrossing::back() const {
  OperationList list;
  for (const bool experts : {false, true}) {
    const std::vector<Parameter> all = parameters_of(parameters_, experts);
    if (all.empty()) continue;
    const bool whole = !is_part(lowering_, all.front().stored_weight);
    if (weights_away_ && whole && sharing_of(lowering_, experts).shards > 1) {
      append_spread(list, experts);
    } else if (weights_away_ != on_host_) {
      append_return(list, experts);
    }
  }
  return list;
}

}  // namespace trainyard
