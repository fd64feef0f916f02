// The end of a step: the gradient norm over the whole network, and the update, which it clips.
// Without a barrier (post-validation, Qi et al. 2023, §4) the update does not wait for the norm.
#include <utility>

#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

// `parts`: the operands are parts already, so the operation works on whole buffers.
Operation sharded(const Lowering& lowering, OperationKind kind, bool experts, bool parts) {
  const Sharing sharing = sharing_of(lowering, experts);
  Operation operation{.kind = kind, .phase = Phase::update, .dtype = Dtype::fp32};
  if (parts) return operation;
  operation.shards = sharing.shards;
  if (sharing.shards > 1) operation.group = sharing.shard;
  return operation;
}

Operation update_of(Lowering& lowering, const std::vector<Parameter>& parameters, bool experts,
                    int norm) {
  const Training& training = lowering.training;
  const bool weight_parts = is_part(lowering, parameters.front().held_weight);
  const bool gradient_parts = is_part(lowering, parameters.front().held_gradient);
  Operation update =
      sharded(lowering, OperationKind::optimizer_step, experts, weight_parts && gradient_parts);
  ProgramBuffer states{.name = "optimizer states", .role = BufferRole::optimizer};
  states.columns = 1;
  states.dtype = Dtype::fp32;
  const bool in_layer =
      lowering.program.buffer(parameters.front().held_weight).scope == Scope::layer;
  states.element_bytes =
      moment_bytes(training.optimizer, in_layer ? UpdatedPart::layer : UpdatedPart::end_of_network);
  states.away = lowering.plan.offload.optimizer;
  states.keeps_weights = training.precision.master_weight_bytes > 0 &&
                         (!casts_master_weights(lowering) || update.shards > 1);
  if (states.keeps_weights) states.element_bytes += training.precision.master_weight_bytes;
  for (const Parameter& parameter : parameters) {
    const ProgramBuffer& weight = lowering.program.buffer(parameter.held_weight);
    const int shards = weight_parts ? 1 : update.shards;
    states.scope = weight.scope;
    states.rows += (weight.rows * weight.columns + shards - 1) / shards;
    update.operands.push_back(updates(parameter.held_gradient));
  }
  if (lowering.plan.optimizer_barrier) update.operands.push_back(reads(norm));
  update.operands.push_back(updates(lowering.add(states)));
  for (const Parameter& parameter : parameters) {
    update.operands.push_back(updates(parameter.held_weight));
  }
  return update;
}

}  // namespace

int norm_buffer(Lowering& lowering) {
  ProgramBuffer buffer{
      .name = "squared gradient norm", .role = BufferRole::scalar, .scope = Scope::stage};
  buffer.rows = buffer.columns = 1;
  buffer.dtype = Dtype::fp32;
  buffer.element_bytes = 4;
  return lowering.add(buffer);
}

std::vector<Operation> squared_norm(const Lowering& lowering,
                                    const std::vector<Parameter>& parameters, int norm) {
  std::vector<Operation> list;
  for (const bool experts : {false, true}) {
    const std::vector<Parameter> some = parameters_of(parameters, experts);
    if (some.empty()) continue;
    Operation squares = sharded(lowering, OperationKind::sum_of_squares, experts,
                                is_part(lowering, some.front().held_gradient));
    for (const Parameter& parameter : some) {
      squares.operands.push_back(reads(parameter.held_gradient));
    }
    squares.operands.push_back(updates(norm));
    list.push_back(std::move(squares));
  }
  return list;
}

// The norm is summed over the parts of sharded states, then over one copy of the network. With
// experts, whose copies are spread over the replicas of other parameters, it is summed over all
// ranks.
std::vector<Operation> norm_reduction(const Lowering& lowering, int norm) {
  const ProgramBuffer& buffer = lowering.program.buffer(norm);
  Operation reduce{.kind = OperationKind::all_reduce,
                   .stream = ProgramStream::data_parallel,
                   .phase = Phase::update,
                   .dtype = buffer.dtype,
                   .message = buffer.bytes(),
                   .operands = {updates(norm)}};
  std::vector<Operation> list;
  const Plan& plan = lowering.plan;
  const auto append = [&](Group group, bool has_members) {
    reduce.group = group;
    if (has_members) list.push_back(reduce);
  };
  if (lowering.model.experts > 0) {
    append(Group::all, plan.devices() > 1);
  } else {
    append(Group::dense_shard, sharing_of(lowering, false).shards > 1);
    append(Group::model, plan.tensor_parallel * plan.pipeline_parallel > 1);
  }
  return list;
}

std::vector<Operation> optimizer_update(Lowering& lowering,
                                        const std::vector<Parameter>& parameters, int norm) {
  std::vector<Operation> list;
  for (const bool experts : {false, true}) {
    const std::vector<Parameter> some = parameters_of(parameters, experts);
    if (!some.empty()) list.push_back(update_of(lowering, some, experts, norm));
  }
  return list;
}

}  // namespace trainyard
