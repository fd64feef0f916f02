// Gradients and weights of which a rank keeps only its part (ZeRO stages 2 and 3, Rajbhandari et
// al. 2020; FSDP, Zhao et al. 2023).
//
// Gradients: every backward pass makes whole gradients of a unit. Behind it, on the stream of the
// reduction, each rank adds its part of their sum to what earlier micro-batches left. A unit makes
// its gradients only when the reduction of the unit two before it has ended (FSDP2's post_backward
// waits for the event of the reduce-scatter before), so that at most two units have whole
// gradients. Without a pipeline the pass ends when all sums are there, as FSDP and DeepSpeed wait
// in their last callback of a backward pass. In a pipeline only the last pass waits (FSDP2's
// is_last_backward): the last two reductions overlap the passes that follow. If the backward pass
// is split, all gradients of a unit are reduced together when the last of them is there, as a
// bucket is.
//
// Weights: under stage 3 a unit's weights are gathered before each pass and dropped after it; the
// gather of the next unit overlaps the current one. There the next pass waits for all sums in any
// case, because its first gather is queued behind the reductions.
#include <algorithm>
#include <utility>

#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

using OperationList = std::vector<Operation>;

double elements(const ProgramBuffer& buffer) {
  return static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns);
}

ProgramStream stream_of(const Lowering& lowering) {
  return lowering.plan.overlap.data_parallel ? ProgramStream::data_parallel
                                             : ProgramStream::compute;
}

// The half of a split backward pass that adds to a gradient; the weight-gradient half if none does.
Phase phase_of(const NetworkUnit& unit, const Parameter& parameter) {
  if (!unit.splits_backward()) return Phase::weight_gradient;
  const auto uses = [&](const Operation& op) {
    return op.phase == Phase::input_gradient &&
           std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& operand) {
             return operand.buffer == parameter.gradient;
           });
  };
  const OperationList& backward = unit.backward();
  return std::any_of(backward.begin(), backward.end(), uses) ? Phase::input_gradient
                                                             : Phase::weight_gradient;
}

Operation clearing(const std::vector<Parameter>& parameters, Phase phase) {
  Operation clear{.kind = OperationKind::clear, .phase = phase, .dtype = Dtype::fp32};
  for (const Parameter& parameter : parameters) {
    clear.operands.push_back(creates(parameter.gradient));
  }
  return clear;
}

// Buffers for this rank's part of each reduced gradient: the gradient itself if not sharded.
std::vector<int> part_buffers(Lowering& lowering, const std::vector<Parameter>& parameters,
                              const Sharing& sharing) {
  std::vector<int> parts;
  for (const Parameter& parameter : parameters) {
    if (sharing.shards == 1) {
      parts.push_back(parameter.gradient);
      continue;
    }
    ProgramBuffer part = lowering.program.buffer(parameter.held_gradient);
    part.role = BufferRole::activation;
    part.scope = Scope::activation;
    part.element_bytes = reduced_gradient_bytes(lowering.training);
    parts.push_back(lowering.add(part));
  }
  return parts;
}

// Reduce-scatter, all-reduce across sharding groups, addition to the sum of earlier micro-batches.
void append_reduction(Lowering& lowering, const std::vector<Parameter>& parameters, Phase phase,
                      OperationList& list) {
  const Sharing sharing = sharing_of(lowering, parameters.front().expert);
  const std::vector<int> parts = part_buffers(lowering, parameters, sharing);
  const double element = reduced_gradient_bytes(lowering.training);
  Operation reduce{.kind = OperationKind::reduce_scatter,
                   .stream = stream_of(lowering),
                   .phase = phase,
                   .dtype = element == 4 ? Dtype::fp32 : lowering.dtype,
                   .group = sharing.shard,
                   .shards = sharing.shards};
  Operation across = reduce;
  across.kind = OperationKind::all_reduce;
  across.group = sharing.replica;
  across.shards = 1;
  Operation accumulate{.kind = OperationKind::accumulate,
                       .stream = stream_of(lowering),
                       .phase = phase,
                       .dtype = Dtype::fp32};
  for (const Parameter& parameter : parameters) {
    reduce.message += Bytes(elements(lowering.program.buffer(parameter.gradient)) * element);
    reduce.operands.push_back(reads(parameter.gradient));
  }
  across.message = reduce.message / sharing.shards;
  for (const int part : parts) {
    reduce.operands.push_back(creates(part));
    across.operands.push_back(updates(part));
    accumulate.operands.push_back(reads(part));
  }
  for (const Parameter& parameter : parameters) {
    accumulate.operands.push_back(updates(parameter.held_gradient));
  }
  if (sharing.shards > 1) list.push_back(std::move(reduce));
  if (sharing.ranks > sharing.shards) list.push_back(std::move(across));
  list.push_back(std::move(accumulate));
}

// The parameters of whose gradients a pass leaves only the sum of a part.
std::vector<Parameter> summed_up(const NetworkUnit& unit, bool experts) {
  std::vector<Parameter> all = parameters_of(unit.used(), experts);
  std::erase_if(all, [](const Parameter& parameter) { return !parameter.keeps_gradient_part(); });
  return all;
}

// Whether the gradient is complete only when another unit's backward pass has ended.
bool is_forgotten_later(const Parameter& parameter) {
  return parameter.end == SharedEnd::back || parameter.end == SharedEnd::middle;
}

// Whether another unit's backward pass, which runs before this one's, has begun the gradient.
bool is_begun_before(const Parameter& parameter) {
  return parameter.end == SharedEnd::front || parameter.end == SharedEnd::middle;
}

std::vector<Parameter> of_phase(const NetworkUnit& unit, std::vector<Parameter> all, Phase phase) {
  std::erase_if(all, [&](const Parameter& p) { return phase_of(unit, p) != phase; });
  return all;
}

}  // namespace

std::optional<Phase> reduce_every_pass(NetworkUnit& unit) {
  OperationList before;
  OperationList after;
  std::optional<Phase> reduced;
  // An unsplit backward pass clears all gradients when it begins.
  const bool split = unit.splits_backward();
  for (const bool experts : {false, true}) {
    std::vector<Parameter> all = summed_up(unit, experts);
    Phase last = Phase::input_gradient;
    for (const Phase phase : {Phase::input_gradient, Phase::weight_gradient}) {
      std::vector<Parameter> some = of_phase(unit, all, phase);
      if (some.empty()) continue;
      last = phase;
      std::erase_if(some, is_begun_before);
      if (!some.empty()) before.push_back(clearing(some, split ? phase : Phase::input_gradient));
    }
    std::erase_if(all, is_forgotten_later);
    if (all.empty()) continue;
    append_reduction(unit.lowering(), all, last, after);
    reduced = std::max(reduced.value_or(last), last);
  }
  unit.surround_backward(before, after);
  return reduced;
}

Phase completing_phase(const NetworkUnit& unit, const Parameter& parameter) {
  if (!parameter.keeps_gradient_part()) return phase_of(unit, parameter);
  Phase last = Phase::input_gradient;
  for (const Parameter& other : summed_up(unit, parameter.expert)) {
    last = std::max(last, phase_of(unit, other));
  }
  return last;
}

std::vector<Operation> weight_fetch(const NetworkUnit& unit, Phase phase) {
  const Lowering& lowering = unit.lowering();
  OperationList list;
  for (const bool experts : {false, true}) {
    std::vector<Parameter> some = parameters_of(unit.used(), experts);
    const SharedEnd has_it = phase == Phase::forward ? SharedEnd::back : SharedEnd::front;
    std::erase_if(some, [&](const Parameter& p) {
      return !p.keeps_weight_part() || p.end == has_it || p.end == SharedEnd::middle;
    });
    if (some.empty()) continue;
    const Sharing sharing = sharing_of(lowering, experts);
    Operation gather{.kind = OperationKind::all_gather,
                     .stream = stream_of(lowering),
                     .phase = phase,
                     .dtype = lowering.dtype,
                     .group = sharing.shard,
                     .shards = sharing.shards};
    for (const Parameter& parameter : some) {
      gather.message += lowering.program.buffer(parameter.weight).bytes();
      gather.operands.push_back(reads(parameter.held_weight));
    }
    for (const Parameter& parameter : some) gather.operands.push_back(creates(parameter.weight));
    list.push_back(std::move(gather));
  }
  return list;
}

}  // namespace trainyard
