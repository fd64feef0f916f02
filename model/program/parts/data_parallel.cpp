// What gradients need before the optimizer: their sum over the ranks that worked on other tokens or
// other heads with the same weights.
#include "model/program/parts/parts.h"

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

}  // namespace

std::vector<Operation> gradient_reduction(const Lowering& lowering,
                                          const std::vector<Parameter>& parameters) {
  const Plan& plan = lowering.plan;
  Operation tokens = reduction(lowering, ProgramStream::tensor_parallel, Group::tensor);
  Operation heads = reduction(lowering, ProgramStream::tensor_parallel, Group::kv_head);
  Operation data = reduction(lowering, ProgramStream::data_parallel, Group::dense_gradient);
  const bool replicated = plan.data_parallel * plan.context_parallel > 1;
  for (const Parameter& parameter : parameters) {
    if (parameter.partial == PartialGradient::tensor) {
      add_gradient(lowering, parameter.gradient, tokens);
    } else if (parameter.partial == PartialGradient::kv_head) {
      add_gradient(lowering, parameter.gradient, heads);
    }
    if (replicated) add_gradient(lowering, parameter.gradient, data);
  }
  std::vector<Operation> list;
  append_if_used(list, tokens);
  append_if_used(list, heads);
  append_if_used(list, data);
  return list;
}

Operation tied_reduction(const Lowering& lowering, Parameter table) {
  Operation reduce = reduction(lowering, ProgramStream::data_parallel, Group::tied_embedding);
  add_gradient(lowering, table.gradient, reduce);
  return reduce;
}

}  // namespace trainyard
