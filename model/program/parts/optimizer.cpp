// The end of a step: the gradients' norm over the whole network and the update that it clips.
// Without a barrier (post-validation, Qi et al. 2023, §4) the update does not wait for the norm.
#include "model/program/parts/parts.h"

namespace trainyard {

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
  if (parameters.empty()) return {};
  Operation squares{.kind = OperationKind::sum_of_squares,
                    .phase = Phase::update,
                    .dtype = Dtype::fp32,
                    .shards = shard_count(lowering)};
  for (const Parameter& parameter : parameters) {
    squares.operands.push_back(reads(parameter.gradient));
  }
  squares.operands.push_back(updates(norm));
  return {squares};
}

// Over the parts of sharded states, then over the copy of the network.
std::vector<Operation> norm_reduction(const Lowering& lowering, int norm) {
  const ProgramBuffer& buffer = lowering.program.buffers[static_cast<std::size_t>(norm)];
  Operation reduce{.kind = OperationKind::all_reduce,
                   .stream = ProgramStream::data_parallel,
                   .phase = Phase::update,
                   .dtype = buffer.dtype,
                   .message = buffer.bytes(),
                   .operands = {updates(norm)}};
  std::vector<Operation> list;
  if (shard_count(lowering) > 1) {
    reduce.group = Group::dense_shard;
    list.push_back(reduce);
  }
  if (lowering.plan.tensor_parallel * lowering.plan.pipeline_parallel > 1) {
    reduce.group = Group::model;
    list.push_back(reduce);
  }
  return list;
}

std::vector<Operation> optimizer_update(Lowering& lowering,
                                        const std::vector<Parameter>& parameters, int norm) {
  if (parameters.empty()) return {};
  const Training& training = lowering.training;
  Operation update{
      .kind = OperationKind::optimizer_step, .phase = Phase::update, .dtype = Dtype::fp32};
  update.shards = shard_count(lowering);
  ProgramBuffer states{.name = "optimizer states", .role = BufferRole::optimizer};
  states.columns = 1;
  states.dtype = Dtype::fp32;
  states.element_bytes = training.precision.master_weight_bytes + training.optimizer.moment_bytes;
  for (const Parameter& parameter : parameters) {
    const ProgramBuffer& weight =
        lowering.program.buffers[static_cast<std::size_t>(parameter.weight)];
    states.scope = weight.scope;
    states.rows += weight.rows * weight.columns;
    update.operands.push_back(updates(parameter.gradient));
  }
  states.rows = (states.rows + update.shards - 1) / update.shards;
  if (lowering.plan.optimizer_barrier) update.operands.push_back(reads(norm));
  update.operands.push_back(updates(lowering.add(states)));
  for (const Parameter& parameter : parameters) {
    update.operands.push_back(updates(parameter.weight));
  }
  return {update};
}

}  // namespace trainyard
