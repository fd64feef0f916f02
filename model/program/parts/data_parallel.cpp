// The reductions of gradients before the optimizer: their sum over the ranks that used the same
// weights for other tokens or other heads.
#include <algorithm>
#include <array>
#include <iterator>

#include "model/program/parts/parts.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

Operation reduction(const Lowering& lowering, ProgramStream stream, Group group) {
  const double bytes = reduced_gradient_bytes(lowering.training);
  return {.kind = OperationKind::all_reduce,
          .stream = stream,
          .phase = Phase::update,
          .dtype = bytes == 4 ? Dtype::fp32 : lowering.dtype,
          .group = group};
}

void add_gradient(const Lowering& lowering, int gradient, Operation& reduce) {
  const ProgramBuffer& buffer = lowering.program.buffer(gradient);
  const double elements = static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns);
  reduce.message += Bytes(elements * reduced_gradient_bytes(lowering.training));
  reduce.operands.push_back(updates(gradient));
}

void append_if_used(std::vector<Operation>& list, const Operation& reduce) {
  if (!reduce.operands.empty()) list.push_back(reduce);
}

// Groups inside one copy of the network whose ranks saw other tokens or heads.
struct PartialGroup {
  PartialGradient partial{};
  ProgramStream stream{};
  Group group{};
};
constexpr std::array<PartialGroup, 3> kPartialGroups = {{
    {PartialGradient::tensor, ProgramStream::tensor_parallel, Group::tensor},
    {PartialGradient::kv_head, ProgramStream::tensor_parallel, Group::kv_head},
    {PartialGradient::expert_tensor, ProgramStream::expert_parallel, Group::expert_tensor},
}};

void append_partial(const Lowering& lowering, const std::vector<Parameter>& parameters,
                    std::vector<Operation>& list) {
  for (const PartialGroup& partial : kPartialGroups) {
    Operation reduce = reduction(lowering, partial.stream, partial.group);
    for (const Parameter& parameter : parameters) {
      if (parameter.partial == partial.partial) {
        add_gradient(lowering, parameter.held_gradient, reduce);
      }
    }
    append_if_used(list, reduce);
  }
}

// The reduction over all ranks that hold the same parameters, for gradients that are reduced once a
// step. With sharded states each rank gets the sum of its part: within its sharding group, then
// across the groups.
void append_over_replicas(const Lowering& lowering, const std::vector<Parameter>& parameters,
                          bool experts, std::vector<Operation>& list) {
  const Sharing sharing = sharing_of(lowering, experts);
  if (sharing.ranks == 1) return;
  Operation data = reduction(lowering, ProgramStream::data_parallel, sharing.all);
  for (const Parameter& parameter : parameters_of(parameters, experts)) {
    if (parameter.keeps_gradient_part()) return;
    add_gradient(lowering, parameter.gradient, data);
  }
  if (sharing.shards == 1) return append_if_used(list, data);
  data.kind = OperationKind::reduce_scatter;
  data.group = sharing.shard;
  data.shards = sharing.shards;
  append_if_used(list, data);
  if (sharing.ranks == sharing.shards) return;
  data.kind = OperationKind::all_reduce;
  data.group = sharing.replica;
  data.message /= sharing.shards;
  append_if_used(list, data);
}

}  // namespace

std::vector<Parameter> parameters_of(const std::vector<Parameter>& parameters, bool experts) {
  std::vector<Parameter> some;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(some),
               [experts](const Parameter& parameter) { return parameter.expert == experts; });
  return some;
}

std::vector<Operation> gradient_reduction(const Lowering& lowering,
                                          const std::vector<Parameter>& parameters) {
  std::vector<Operation> list;
  append_partial(lowering, parameters, list);
  for (const bool experts : {false, true}) {
    append_over_replicas(lowering, parameters, experts, list);
  }
  return list;
}

Operation await_reductions(const std::vector<Operation>& reductions) {
  Operation wait{.kind = OperationKind::await, .dtype = reductions.front().dtype};
  for (const Operation& reduce : reductions) {
    for (const Operand& operand : reduce.operands) {
      wait.operands.push_back(with_access(operand, Access::read));
    }
  }
  return wait;
}

std::vector<Operation> weight_gather(const Lowering& lowering,
                                     const std::vector<Parameter>& parameters) {
  std::vector<Operation> list;
  for (const bool experts : {false, true}) {
    const Sharing sharing = sharing_of(lowering, experts);
    if (sharing.shards == 1) continue;
    Operation gather{.kind = OperationKind::all_gather,
                     .stream = ProgramStream::data_parallel,
                     .phase = Phase::update,
                     .dtype = lowering.dtype,
                     .group = sharing.shard,
                     .shards = sharing.shards};
    for (const Parameter& parameter : parameters_of(parameters, experts)) {
      if (parameter.keeps_weight_part() || parameter.weight_away()) continue;
      gather.message += lowering.program.buffer(parameter.weight).bytes();
      gather.operands.push_back(updates(parameter.weight));
    }
    append_if_used(list, gather);
  }
  return list;
}

std::vector<Operation> mirror_reduction(const Lowering& lowering,
                                        const std::vector<Parameter>& parameters) {
  std::vector<Operation> list;
  if (lowering.plan.schedule->route != Route::both_ways) return list;
  for (const bool experts : {false, true}) {
    Operation reduce = reduction(lowering, ProgramStream::data_parallel, Group::mirror);
    bool parts = false;
    for (const Parameter& parameter : parameters_of(parameters, experts)) {
      add_gradient(lowering, parameter.held_gradient, reduce);
      parts = parameter.keeps_gradient_part();
    }
    reduce.shards = parts ? 1 : sharing_of(lowering, experts).shards;
    reduce.message /= reduce.shards;
    append_if_used(list, reduce);
  }
  return list;
}

Operation shared_reduction(const Lowering& lowering, Parameter table) {
  Operation reduce = reduction(lowering, ProgramStream::embedding, Group::tied_embedding);
  add_gradient(lowering, table.held_gradient, reduce);
  return reduce;
}

}  // namespace trainyard
