#include "model/program/parts/unit.h"

#include <algorithm>
#include <utility>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

ProgramBuffer activation_buffer(const Lowering& lowering, std::string_view name, std::int64_t rows,
                                std::int64_t columns) {
  ProgramBuffer buffer;
  buffer.name = name;
  buffer.rows = rows;
  buffer.columns = columns;
  buffer.dtype = lowering.dtype;
  buffer.element_bytes = lowering.training.precision.activation_bytes;
  return buffer;
}

// The number of ranks, among those over which the gradient norm is summed, that hold each element.
// The norm is summed over one copy of the network; with experts, which have no such copy, over all
// ranks.
double ranks_with_each_element(const Lowering& lowering, const Cut& cut) {
  const Plan& plan = lowering.plan;
  int ranks = plan.schedule->route == Route::both_ways ? 2 : 1;
  if (lowering.model.experts > 0) {
    const Sharing sharing = sharing_of(lowering, cut.experts > 0);
    ranks *= sharing.ranks / sharing.shards;
  }
  if (cut.axis != CutAxis::none) return ranks * cut.segments.front().replicas;
  return ranks * (cut.experts > 0 ? plan.expert_tensor_parallel : plan.tensor_parallel);
}

}  // namespace

int Lowering::add(const ProgramBuffer& buffer) {
  program.buffers.push_back(buffer);
  return static_cast<int>(program.buffers.size()) - 1;
}

int Lowering::activation(std::string_view name, std::int64_t rows, std::int64_t columns) {
  return add(activation_buffer(*this, name, rows, columns));
}

Sharing sharing_of(const Lowering& lowering, bool experts) {
  const Plan& plan = lowering.plan;
  const bool shards = plan.zero_stage >= 1;
  if (experts) {
    const int ranks = plan.expert_data_parallel;
    return {Group::expert_data, Group::expert_data, Group::none, ranks, shards ? ranks : 1};
  }
  return {Group::dense_gradient, Group::dense_shard, Group::dense_replica,
          plan.data_parallel * plan.context_parallel, shards ? plan.sharding_group : 1};
}

bool casts_master_weights(const Lowering& lowering) {
  return lowering.plan.held_zero_stage() >= 3 && !lowering.training.stack.keeps_weight_copy &&
         lowering.training.precision.master_weight_bytes > 0;
}

bool is_part(const Lowering& lowering, int buffer) {
  return lowering.program.buffer(buffer).part_of >= 0;
}

OffloadTarget weights_target(const Lowering& lowering) {
  const Offload& offload = lowering.plan.offload;
  return casts_master_weights(lowering) ? offload.optimizer : offload.parameters;
}

Lowering start_lowering(const Transformer& model, const Training& training, const Plan& plan) {
  Lowering lowering{.model = model, .training = training, .plan = plan};
  lowering.program.microbatches = plan.microbatches;
  lowering.tokens = training.sequence_length / plan.context_parallel * plan.micro_batch;
  lowering.local_tokens =
      plan.sequence_parallel ? lowering.tokens / plan.tensor_parallel : lowering.tokens;
  const PrecisionRecipe& precision = training.precision;
  lowering.dtype = precision.activation_bytes == 4 ? Dtype::fp32 : precision.head_gemm;
  lowering.hidden = lowering.activation("hidden", lowering.local_tokens, model.hidden_size);
  lowering.gradient =
      lowering.activation("hidden gradient", lowering.local_tokens, model.hidden_size);
  if (model.mtp_layers > 0) {
    const auto rows = lowering.local_tokens;
    lowering.embedded = lowering.activation("mtp embedding", rows, model.hidden_size);
    lowering.embedded_gradient =
        lowering.activation("mtp embedding gradient", rows, model.hidden_size);
  }
  return lowering;
}

Operand reads(int buffer, int ahead) { return {.buffer = buffer, .ahead = ahead}; }
Operand creates(int buffer, int ahead) { return with_access(reads(buffer, ahead), Access::create); }
Operand updates(int buffer, int ahead) { return with_access(reads(buffer, ahead), Access::update); }

Operand with_access(Operand operand, Access access) {
  operand.access = access;
  return operand;
}

Segment split(const Lowering& lowering, std::int64_t whole) {
  return {.whole = whole, .shards = lowering.plan.tensor_parallel};
}

Segment split_kv_heads(const Lowering& lowering, std::int64_t whole) {
  const int tensor = lowering.plan.tensor_parallel;
  const int shards = std::min(tensor, lowering.model.kv_heads);
  return {.whole = whole, .shards = shards, .replicas = tensor / shards};
}

int NetworkUnit::local_activation(std::string_view name) {
  return lowering_.activation(name, lowering_.local_tokens, model().hidden_size);
}

int NetworkUnit::whole_activation(std::string_view name, std::int64_t columns) {
  return lowering_.activation(name, lowering_.tokens, columns);
}

int NetworkUnit::numbers(std::string_view name, std::int64_t rows, std::int64_t columns) {
  ProgramBuffer buffer{.name = name, .dtype = Dtype::fp32, .element_bytes = 4};
  buffer.rows = rows;
  buffer.columns = columns;
  return lowering_.add(buffer);
}

int NetworkUnit::dropout_mask(std::string_view name) {
  const int mask = local_activation(name);
  ProgramBuffer& buffer = lowering_.program.buffers.back();
  buffer.dtype = Dtype::fp8;
  buffer.element_bytes = 1;
  return mask;
}

Parameter NetworkUnit::parameter(const Matrix& matrix, PartialGradient partial, SharedEnd end) {
  ProgramBuffer buffer;
  buffer.name = matrix.name;
  buffer.role = BufferRole::weight;
  buffer.scope = of_parameters_;
  buffer.rows = matrix.rows;
  buffer.columns = matrix.columns;
  buffer.dtype = lowering_.dtype;
  buffer.element_bytes = lowering_.training.precision.weight_bytes;
  buffer.cut = matrix.cut;
  buffer.prediction = matrix.prediction;
  buffer.replicas = ranks_with_each_element(lowering_, matrix.cut);
  Parameter parameter{.weight = lowering_.add(buffer),
                      .partial = partial,
                      .expert = matrix.cut.experts > 0,
                      .end = end};
  buffer.name = matrix.gradient_name;
  buffer.role = BufferRole::gradient;
  buffer.element_bytes = kept_gradient_bytes(lowering_.training);
  buffer.dtype = buffer.element_bytes == 4 ? Dtype::fp32 : lowering_.dtype;
  parameter.gradient = lowering_.add(buffer);
  keep_parts(parameter);
  parameter.stored_weight = store(parameter.held_weight, weights_target(lowering_));
  parameter.stored_gradient = store(parameter.held_gradient, lowering_.plan.offload.gradients);
  parameters_.push_back(parameter);
  used_.push_back(parameter);
  return parameter;
}

// Adds a buffer for this rank's part, which keeps role and scope. The whole becomes an activation:
// a weight lives from its gather, a unit ahead, to its last use.
int NetworkUnit::keep_part(int whole, const Sharing& sharing) {
  ProgramBuffer part = lowering_.program.buffer(whole);
  const bool weight = part.role == BufferRole::weight;
  part.rows = (part.rows * part.columns + sharing.shards - 1) / sharing.shards;
  part.columns = 1;
  part.part_of = whole;
  if (sharing.shards > 1) part.among = sharing.shard;
  if (weight && casts_master_weights(lowering_)) {
    part.element_bytes = lowering_.training.precision.master_weight_bytes;
    part.dtype = Dtype::fp32;
  }
  ProgramBuffer& used = lowering_.program.buffer(whole);
  used.role = BufferRole::activation;
  used.gathered = weight;
  if (!weight) used.element_bytes = whole_gradient_bytes(lowering_.training);
  if (!weight && splits_backward()) used.scope = Scope::activation;
  return lowering_.add(part);
}

void NetworkUnit::keep_parts(Parameter& parameter) {
  const Sharing sharing = sharing_of(lowering_, parameter.expert);
  const int stage = lowering_.plan.held_zero_stage();
  parameter.held_weight = parameter.weight;
  parameter.held_gradient = parameter.gradient;
  if (stage >= 3 && sharing.shards > 1) {
    parameter.held_weight = keep_part(parameter.weight, sharing);
  } else if (casts_master_weights(lowering_)) {
    // A single rank keeps only the master weights; kernels read them cast.
    ProgramBuffer& weight = lowering_.program.buffer(parameter.weight);
    weight.element_bytes = lowering_.training.precision.master_weight_bytes;
    weight.dtype = Dtype::fp32;
  }
  if (stage >= 2 && sharing.ranks > 1) {
    parameter.held_gradient = keep_part(parameter.gradient, sharing);
  }
}

// Adds a buffer outside the device; the one on the device then exists only during a pass.
int NetworkUnit::store(int held, OffloadTarget target) {
  if (target == OffloadTarget::none) return held;
  ProgramBuffer stored = lowering_.program.buffer(held);
  stored.away = target;
  ProgramBuffer& used = lowering_.program.buffer(held);
  used.gathered = used.role == BufferRole::weight && used.part_of < 0;
  used.role = BufferRole::activation;
  return lowering_.add(stored);
}

Parameter NetworkUnit::borrowed(Parameter parameter, SharedEnd end) {
  const auto copied = [this](int buffer) {
    return lowering_.add(lowering_.program.buffer(buffer));
  };
  if (parameter.end == SharedEnd::front) {
    parameter.end = end;
  } else {
    const auto copy = [&](int& used, int& held, bool away) {
      const bool parts = used != held;
      if (parts || away) used = copied(used);
      if (away) held = parts ? copied(held) : used;
    };
    copy(parameter.weight, parameter.held_weight, parameter.weight_away());
    copy(parameter.gradient, parameter.held_gradient, parameter.gradient_away());
  }
  used_.push_back(parameter);
  return parameter;
}

Parameter NetworkUnit::replicated(const Matrix& matrix) {
  const bool own_tokens = lowering_.plan.sequence_parallel;
  return parameter(matrix, own_tokens ? PartialGradient::tensor : PartialGradient::none);
}

void NetworkUnit::add(Phase phase, Operation operation) {
  operation.phase = phase;
  (phase == Phase::forward ? forward_ : backward_).push_back(std::move(operation));
}

void NetworkUnit::repeat(Operation operation) {
  operation.phase = Phase::forward;
  operation.recomputed = true;
  backward_.push_back(std::move(operation));
}

void NetworkUnit::repeat_forward() {
  const int discarded = local_activation("output again");
  std::vector<Operation> again = forward_;
  // With dropout the last saved tensor is the mask, which the last operation makes.
  if (lowering_.training.stack.recompute_stops_early && !drops()) {
    const auto last_gemm = std::find_if(again.rbegin(), again.rend(), [](const Operation& op) {
      return op.kind == OperationKind::linear || op.kind == OperationKind::grouped_linear;
    });
    again.erase(last_gemm.base() - 1, again.end());
  }
  for (Operation& operation : again) {
    for (Operand& operand : operation.operands) {
      if (operand.ahead == 1) operand = creates(discarded);
    }
    repeat(std::move(operation));
  }
}

bool NetworkUnit::splits_backward() const {
  const Plan& plan = lowering_.plan;
  return trainyard::splits_backward(*plan.schedule, plan.pipeline_parallel);
}

void NetworkUnit::surround_backward(const std::vector<Operation>& before,
                                    const std::vector<Operation>& after) {
  backward_.insert(backward_.begin(), before.begin(), before.end());
  backward_.insert(backward_.end(), after.begin(), after.end());
}

// Without overlap, collectives run on the compute stream. Only the second gather of a saved input
// always overlaps kernels, because nothing waits for it.
Operation NetworkUnit::tensor_collective(OperationKind kind, Phase phase, int whole) const {
  const bool beside = lowering_.plan.overlap.tensor_parallel || phase == Phase::weight_gradient;
  const ProgramBuffer& buffer = lowering_.program.buffer(whole);
  return {.kind = kind,
          .stream = beside ? ProgramStream::tensor_parallel : ProgramStream::compute,
          .dtype = buffer.dtype,
          .group = Group::tensor,
          .message = buffer.bytes()};
}

bool NetworkUnit::copies_sequences(Phase phase) const {
  return !plain_ && lowering_.training.stack.copies_sharded_sequences &&
         lowering_.plan.sequence_parallel && lowering_.plan.tensor_parallel > 1 &&
         phase != Phase::weight_gradient;
}

// In a program this rank's rows are always contiguous, so the copy reorders nothing: it moves as
// many bytes as the stack's copy would.
int NetworkUnit::sequence_copy(Phase phase, int whole, bool column_parallel,
                               std::string_view name) {
  ProgramBuffer buffer = lowering_.program.buffer(whole);
  buffer.name = name;
  const int copied = lowering_.add(buffer);
  const bool layer = of_parameters_ == Scope::layer;
  const OperatorKind part =
      column_parallel ? (layer ? OperatorKind::gather_copy : OperatorKind::head_copy)
                      : (layer ? OperatorKind::scatter_copy : OperatorKind::embedding_copy);
  add(phase, {.kind = OperationKind::move,
              .part = part,
              .dtype = buffer.dtype,
              .operands = {reads(whole), creates(copied)}});
  return copied;
}

Operand NetworkUnit::gathered(Phase phase, Operand local, std::string_view name) {
  if (!lowering_.plan.sequence_parallel) return with_access(local, Access::read);
  const bool copies = copies_sequences(phase);
  ProgramBuffer buffer = lowering_.program.buffer(local.buffer);
  buffer.name = copies ? "gathered chunks" : name;
  buffer.rows = lowering_.tokens;
  const int whole = lowering_.add(buffer);
  Operation gather = tensor_collective(OperationKind::all_gather, phase, whole);
  gather.operands = {with_access(local, Access::read), creates(whole)};
  add(phase, std::move(gather));
  if (!copies) return reads(whole);
  return reads(sequence_copy(phase, whole, phase == Phase::forward, name));
}

int NetworkUnit::reduced(Phase phase, int partial, std::string_view name) {
  const int target = lowering_.plan.sequence_parallel ? local_activation(name) : partial;
  return reduced(phase, reads(partial), reads(target)).buffer;
}

Operand NetworkUnit::reduced(Phase phase, Operand partial, Operand scattered) {
  if (lowering_.plan.tensor_parallel == 1) return partial;
  const bool scatters = lowering_.plan.sequence_parallel;
  if (copies_sequences(phase)) {
    const bool column_parallel = phase == Phase::input_gradient;
    partial = reads(sequence_copy(phase, partial.buffer, column_parallel, "chunks to scatter"));
  }
  Operation reduce = tensor_collective(
      scatters ? OperationKind::reduce_scatter : OperationKind::all_reduce, phase, partial.buffer);
  if (scatters) {
    reduce.operands = {with_access(partial, Access::read), with_access(scattered, Access::create)};
  } else {
    reduce.operands = {with_access(partial, Access::update)};
  }
  add(phase, std::move(reduce));
  return scatters ? scattered : partial;
}

int NetworkUnit::gathered_columns(Phase phase, int columns, std::string_view name) {
  const int whole = whole_activation(name, model().hidden_size);
  Operation gather = tensor_collective(OperationKind::all_gather, phase, whole);
  gather.operands = {reads(columns), creates(whole)};
  add(phase, std::move(gather));
  return whole;
}

void NetworkUnit::all_reduced(Phase phase, int buffer, Reduction reduction) {
  if (lowering_.plan.tensor_parallel == 1) return;
  Operation reduce = tensor_collective(OperationKind::all_reduce, phase, buffer);
  reduce.reduction = reduction;
  reduce.operands = {updates(buffer)};
  add(phase, std::move(reduce));
}

}  // namespace trainyard
