// What gradients need before the optimizer: their sum over the ranks that worked on other tokens or
// other heads with the same weights.
#include <utility>

#include "model/program/parts/parts.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

Operation reduction(const Lowering& lowering, ProgramStream stream, Group group) {
  const double bytes = lowering.training.stack.reduction_bytes;
  return {.kind = OperationKind::all_reduce,
          .stream = stream,
          .phase = Phase::update,
          .dtype = bytes == 4 ? Dtype::fp32 : lowering.dtype,
          .group = group};
}

void add_gradient(const Lowering& lowering, int gradient, Operation& reduce) {
  const ProgramBuffer& buffer = lowering.program.buffers[static_cast<std::size_t>(gradient)];
  const double elements = static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns);
  reduce.message += Bytes(elements * lowering.training.stack.reduction_bytes);
  reduce.operands.push_back(updates(gradient));
}

void append_if_used(std::vector<Operation>& list, const Operation& reduce) {
  if (!reduce.operands.empty()) list.push_back(reduce);
}

// Over all ranks that hold the same parameters. With sharded states each gets the sum of its part,
// within its sharding group and then across the groups.
void append_over_replicas(const Lowering& lowering, std::vector<Operation>& list, Operation data) {
  const int replicas = lowering.plan.data_parallel * lowering.plan.context_parallel;
  if (replicas == 1) return;
  const int shards = shard_count(lowering);
  if (shards == 1) return append_if_used(list, data);
  data.kind = OperationKind::reduce_scatter;
  data.group = Group::dense_shard;
  data.shards = shards;
  append_if_used(list, data);
  if (replicas == shards) return;
  data.kind = OperationKind::all_reduce;
  data.group = Group::dense_replica;
  data.message /= shards;
  append_if_used(list, data);
}

}  // namespace

int shard_count(const Lowering& lowering) {
  return lowering.plan.zero_stage >= 1 ? lowering.plan.sharding_group : 1;
}

std::vector<Operation> gradient_reduction(const Lowering& lowering,
                                          const std::vector<Parameter>& parameters) {
  Operation tokens = reduction(lowering, ProgramStream::tensor_parallel, Group::tensor);
  Operation heads = reduction(lowering, ProgramStream::tensor_parallel, Group::kv_head);
  Operation data = reduction(lowering, ProgramStream::data_parallel, Group::dense_gradient);
  for (const Parameter& parameter : parameters) {
    if (parameter.partial == PartialGradient::tensor) {
      add_gradient(lowering, parameter.gradient, tokens);
    } else if (parameter.partial == PartialGradient::kv_head) {
      add_gradient(lowering, parameter.gradient, heads);
    }
    add_gradient(lowering, parameter.gradient, data);
  }
  std::vector<Operation> list;
  append_if_used(list, tokens);
  append_if_used(list, heads);
  append_over_replicas(lowering, list, std::move(data));
  return list;
}

std::vector<Operation> weight_gather(const Lowering& lowering,
                                     const std::vector<Parameter>& parameters) {
  if (shard_count(lowering) == 1) return {};
  Operation gather{.kind = OperationKind::all_gather,
                   .stream = ProgramStream::data_parallel,
                   .phase = Phase::update,
                   .dtype = lowering.dtype,
                   .group = Group::dense_shard,
                   .shards = shard_count(lowering)};
  for (const Parameter& parameter : parameters) {
    gather.message += lowering.program.buffers[static_cast<std::size_t>(parameter.weight)].bytes();
    gather.operands.push_back(updates(parameter.weight));
  }
  std::vector<Operation> list;
  append_if_used(list, gather);
  return list;
}

std::vector<Operation> mirror_reduction(const Lowering& lowering,
                                        const std::vector<Parameter>& parameters) {
  if (lowering.plan.schedule->route != Route::both_ways) return {};
  Operation reduce = reduction(lowering, ProgramStream::data_parallel, Group::mirror);
  for (const Parameter& parameter : parameters) {
    add_gradient(lowering, parameter.gradient, reduce);
  }
  reduce.shards = shard_count(lowering);
  reduce.message /= reduce.shards;
  std::vector<Operation> list;
  append_if_used(list, reduce);
  return list;
}

Operation tied_reduction(const Lowering& lowering, Parameter table) {
  Operation reduce = reduction(lowering, ProgramStream::data_parallel, Group::tied_embedding);
  add_gradient(lowering, table.gradient, reduce);
  return reduce;
}

}  // namespace trainyard
