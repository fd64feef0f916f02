#include "model/program/price.h"

#include <algorithm>
#include <cstdint>

#include "model/cost/compute.h"
#include "model/cost/memory/offload.h"
#include "model/plan/layer_shard.h"
#include "model/workload/operators.h"

namespace trainyard {
namespace {

// Several operations are parts of one operator; only one of them takes its time, these take none.
bool has_no_time_of_its_own(OperationKind kind) {
  switch (kind) {
    case OperationKind::route:
    case OperationKind::route_gradient:
    case OperationKind::cross_entropy_max:
    case OperationKind::cross_entropy_loss:
    case OperationKind::positions:
    case OperationKind::positions_gradient:
    case OperationKind::dropout:
    case OperationKind::dropout_gradient:
      return true;
    default:
      return false;
  }
}

// Elements of the gradients that the gradient norm or the update reads on this rank.
double gradient_elements(const Program& program, const Operation& operation) {
  const bool is_norm = operation.kind == OperationKind::sum_of_squares;
  const std::size_t gradients =
      is_norm ? operation.operands.size() - 1 : updated_gradients(operation);
  double elements = 0;
  for (std::size_t i = 0; i < gradients; ++i) {
    const auto index = static_cast<std::size_t>(operation.operands[i].buffer);
    const ProgramBuffer& buffer = program.buffers[index];
    const int shards = buffer.part_of >= 0 ? 1 : operation.shards;
    elements += static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns) / shards;
  }
  return elements;
}

// Handbook §4: the norm reads the gradient; the update reads it again.
double bytes_per_parameter(const Training& training, OperationKind kind, UpdatedPart part) {
  const double gradient = kept_gradient_bytes(training);
  if (kind == OperationKind::sum_of_squares) return gradient;
  return update_bytes(training.optimizer, part, training.precision, gradient);
}

enum class Updated : std::uint8_t { end_of_network, dense_of_layer, experts_of_layer };

// A layer's dense and expert parameters are updated by operations of their own.
Updated updated_by(const Program& program, const Operation& update) {
  const auto& gradient = program.buffer(update.operands.front().buffer);
  if (gradient.scope != Scope::layer) return Updated::end_of_network;
  return gradient.cut.experts > 0 ? Updated::experts_of_layer : Updated::dense_of_layer;
}

BytesPerSecond update_rate(const Cluster& cluster, const Plan& plan) {
  const Device& device = cluster.device;
  return plan.offload.optimizer == OffloadTarget::none
             ? device.memory_bandwidth * device.rates.memory
             : update_bandwidth(cluster, plan.offload.optimizer);
}

// The place outside the device that a copy goes to or comes from.
OffloadTarget place_of(const Program& program, const Operation& copy) {
  for (const Operand& operand : copy.operands) {
    const OffloadTarget away = program.buffer(operand.buffer).away;
    if (away != OffloadTarget::none) return away;
  }
  return OffloadTarget::host;
}

Seconds time_of(const OperatorTime& time, Phase phase) {
  switch (phase) {
    case Phase::forward:
      return time.forward;
    case Phase::input_gradient:
      return time.input_gradient;
    case Phase::weight_gradient:
      return time.weight_gradient;
    case Phase::update:
      break;
  }
  return Seconds(0);
}

// One operation's share of the traffic of the operator that moves tokens to their experts and back:
// the rows of its first token operand, which it reads, and of the one that it creates.
double moved_share(const Program& program, const Operation& operation, const Operator& op,
                   const Job& job) {
  std::int64_t rows = 0;
  for (const Access access : {Access::read, Access::create}) {
    const auto moved = std::find_if(
        operation.operands.begin(), operation.operands.end(), [&](const Operand& operand) {
          const auto& buffer = program.buffer(operand.buffer);
          return operand.access == access && buffer.columns == job.model.hidden_size;
        });
    rows += program.buffer(moved->buffer).rows;
  }
  const double elements = static_cast<double>(rows) * job.model.hidden_size;
  return Bytes(elements * job.training.precision.activation_bytes) / op.forward_traffic;
}

}  // namespace

OperationPrices::OperationPrices(const PreparedJob& job, const Plan& plan)
    : job_(job), updates_at_(update_rate(job.job.cluster, plan)) {
  const Job& j = job.job;
  const LayerShard shard = layer_shard(plan);
  const auto add = [&](const OperatorList& list, LayerKind layer, bool in_layer) {
    for (const Operator& op : list) {
      priced_.push_back({layer, in_layer, op, operator_time(j.cluster.device, j.training, op),
                         cast_time(j.cluster.device, j.training, op)});
    }
  };
  for (int index = 0; index < kLayerKinds; ++index) {
    if (index == kMtpKind && j.model.mtp_layers == 0) continue;
    const LayerKind kind = layer_kind_at(j.model, index);
    if (kind.moe && j.model.experts == 0) continue;
    orthogonalisation_[static_cast<std::size_t>(index)] = orthogonalisation_time(j, plan, kind);
    add(layer_operators(j.model, j.training, shard, kind), kind, true);
  }
  add(embedding_operators(j.model, j.training, shard), {}, false);
  add(head_operators(j.model, j.training, shard), {}, false);
}

const OperationPrices::Priced* OperationPrices::find(LayerKind kind, OperatorKind part) const {
  const auto found = std::find_if(priced_.begin(), priced_.end(), [&](const Priced& priced) {
    return priced.op.kind == part && (!priced.in_layer || priced.layer == kind);
  });
  return found == priced_.end() ? nullptr : &*found;
}

// The price of a GEMM's operator includes its casts. A cast operation takes that part, the GEMM the
// rest; a cast that another kernel makes (of an MLP's activation, say) takes no time of its own.
// The two projections from the input of latent attention each have a cast in the list of operators,
// but the program casts the input once: that operation has the query's cast, and the GEMM of the
// keys and values keeps its own.
Seconds OperationPrices::kernel_time(const Priced& priced, const Operation& operation) {
  const Seconds casts = time_of(priced.casts, operation.phase);
  if (operation.kind == OperationKind::cast) return casts;
  const Seconds all = time_of(priced.time, operation.phase);
  const bool cast_by_another =
      operation.part == OperatorKind::kv_down && operation.phase == Phase::forward;
  return cast_by_another ? all : all - casts;
}

Seconds OperationPrices::update_time(const Program& program, const Block& block,
                                     const Operation& update) const {
  const double elements = gradient_elements(program, update);
  const Updated updated = updated_by(program, update);
  const UpdatedPart part =
      updated == Updated::end_of_network ? UpdatedPart::end_of_network : UpdatedPart::layer;
  const Bytes moved(elements * bytes_per_parameter(job_.job.training, update.kind, part));
  const Seconds time = moved / updates_at_;
  if (update.kind == OperationKind::sum_of_squares) return time;
  const OrthogonalisationTime& products =
      orthogonalisation_[static_cast<std::size_t>(index_of(block.kind))];
  switch (updated) {
    case Updated::dense_of_layer:
      return time + products.dense;
    case Updated::experts_of_layer:
      return time + products.experts;
    case Updated::end_of_network:
      break;
  }
  return time;
}

Seconds OperationPrices::of(const Program& program, const Block& block,
                            const Operation& operation) const {
  if (operation.kind == OperationKind::sum_of_squares ||
      operation.kind == OperationKind::optimizer_step) {
    return update_time(program, block, operation);
  }
  if (operation.kind == OperationKind::copy) {
    return operation.message / bandwidth_to(job_.job.cluster, place_of(program, operation));
  }
  if (!operation.part || has_no_time_of_its_own(operation.kind)) return Seconds(0);
  const Priced* priced = find(block.kind, *operation.part);
  if (priced == nullptr) return Seconds(0);
  if (*operation.part == OperatorKind::permutation) {
    return moved_share(program, operation, priced->op, job_.job) *
           time_of(priced->time, operation.phase);
  }
  const double keys = priced->op.attention.keys;
  if (keys == 0) {
    // A GEMM that is recomputed for some of its columns only takes their share of the time.
    const double columns =
        operation.recomputed && operation.gemm.n > 0 ? operation.gemm.n / priced->op.gemm.n : 1;
    return columns * kernel_time(*priced, operation);
  }
  // A step of ring attention takes its share of the core, and merges its part of the output. A
  // block whose scores are recomputed on their own merges nothing.
  const double share = operation.attention.keys / keys;
  const bool alone = operation.kind == OperationKind::attention && operation.step > 0;
  const Priced* merge = alone ? nullptr : find(block.kind, OperatorKind::ring_merge);
  const Seconds core = time_of(priced->time, operation.phase);
  return share * (merge == nullptr ? core : core + time_of(merge->time, operation.phase));
}

}  // namespace trainyard
