#include "model/cost/kernel_times.h"

#include <algorithm>

#include "model/workload/recomputation.h"

namespace trainyard {
namespace {

// Bytes of gradients alive in an operator's backward pass: of its output and its input, in 16 bits.
// An unfused attention core has two score matrices, behind dropout and before it (softmax's
// backward pass writes over its gradient: Megatron-LM,
// fused_kernels/scaled_masked_softmax_cuda.cu), and a third one, the input buffer of the scores'
// GEMM (core/transformer/dot_product_attention.py, matmul_input_buffer, of the global memory
// buffer).
Bytes gradient_bytes(const Training& training, const Operator& op) {
  const double element = training.precision.activation_bytes;
  if (op.cls == OperatorClass::attention) {
    const AttentionShape& a = op.attention;
    const double rows = a.batch * a.heads * a.queries;
    const double width = training.stack.flash_attention ? 2 * (a.query_head_dim + a.value_head_dim)
                                                        : 3 * a.keys / a.blocks;
    return Bytes(rows * width * element);
  }
  return Bytes(op.gemm.m * (op.gemm.n + op.gemm.k) * op.gemm.groups * element);
}

// Bytes alive in attention's backward pass under all-gather context parallelism: the gathered keys
// and values of all context ranks and their gradients, for the whole sequence even under a sliding
// window. What the operators behind attention had saved is freed by then and is taken off.
class GatheredKeys {
 public:
  GatheredKeys(const Training& training, const LayerShard& shard)
      : training_(training),
        ranks_(shard.context_algorithm == ContextAlgorithm::all_gather ? shard.context : 1) {}
  void add(const Operator& op) {
    if (ranks_ == 1) return;
    if (op.cls != OperatorClass::attention) {
      most_ -= op.saved;
      return;
    }
    const AttentionShape& a = op.attention;
    const double elements =
        ranks_ * a.batch * a.queries * a.kv_heads * (a.query_head_dim + a.value_head_dim);
    most_ =
        gradient_bytes(training_, op) + Bytes(2 * elements * training_.precision.activation_bytes);
  }
  Bytes most() const { return most_; }

 private:
  const Training& training_;
  int ranks_ = 1;
  Bytes most_;
};

// Bytes that the input-gradient pass of a split backward keeps for the weight-gradient pass (Qi et
// al. 2024, §3): of a GEMM its saved input and the gradient of its output, gathered. Only the
// input-gradient pass needs cast weights, and the queries, keys and values that projections save.
Bytes kept_between_halves(const Training& training, const Operator& op) {
  const bool gemm = op.cls == OperatorClass::gemm || op.cls == OperatorClass::grouped_gemm;
  if (!gemm || op.weights == 0) return Bytes(0);
  const GemmShape& g = op.gemm;
  const double element = training.precision.saved_gemm_input_bytes;
  const bool saves_output = op.kind == OperatorKind::qkv_projection ||
                            op.kind == OperatorKind::query_up || op.kind == OperatorKind::kv_up;
  const double output = saves_output ? g.m * g.n * training.precision.activation_bytes : 0;
  const Bytes input =
      std::clamp(op.saved - Bytes(output), Bytes(0), Bytes(g.m * g.k * g.groups * element));
  return input + Bytes(g.m * g.n * g.groups * element);
}

bool exchanges_tokens(const LayerShard& shard) {
  return shard.expert > 1 || shard.expert_tensor > 1;
}

bool ends_mlp(OperatorKind kind) {
  return kind == OperatorKind::mlp_down || kind == OperatorKind::shared_down;
}

bool deals_heads(const LayerShard& shard) {
  return shard.context > 1 && shard.context_algorithm == ContextAlgorithm::ulysses;
}

// Saved because Ulysses exchanged them: queries, keys and values of other ranks' tokens, and the
// output of this rank's tokens.
Bytes brought_by_ulysses(const LayerShard& shard, const AttentionShape& a, double element) {
  if (!deals_heads(shard)) return Bytes(0);
  const double widths = a.query_head_dim + a.value_head_dim;
  return Bytes(a.batch * a.queries * (a.heads + a.kv_heads) * widths * element);
}

// Bytes that recomputation of every second GEMM keeps: the outputs of the other GEMMs, but for the
// experts' last, which no operator needs again; what an exchange brought; what sequence parallelism
// scattered of the output projection's output (torchtitan's list of operations to save has
// reduce_scatter_tensor); attention's output and log-sum-exp. The outputs of the MLP's last GEMM,
// scattered or not, and queries and values before an exchange of heads are not needed either. A
// compiler does not keep them, but an eager policy, which only counts GEMMs, does.
Bytes saved_by_every_second(const Job& job, const LayerShard& shard, const Operator& op) {
  const double element = job.training.precision.activation_bytes;
  if (op.cls == OperatorClass::attention) {
    const AttentionShape& a = op.attention;
    return Bytes(a.batch * a.heads * a.queries * (element * a.value_head_dim + 4)) +
           brought_by_ulysses(shard, a, element);
  }
  if (op.cls == OperatorClass::memory_bound) return Bytes(0);
  if (op.kind == OperatorKind::expert_down) return Bytes(0);
  const bool exchanged = op.kind == OperatorKind::qkv_projection && deals_heads(shard);
  if (job.training.stack.compiled && (ends_mlp(op.kind) || exchanged)) return Bytes(0);
  const GemmShape& g = op.gemm;
  const double output = g.n * (1 - every_second_share(job.model, op));
  const double brought = op.kind == OperatorKind::expert_up && exchanges_tokens(shard) ? g.k : 0;
  const bool scatters = op.kind == OperatorKind::output_projection || ends_mlp(op.kind);
  const bool shards = shard.sequence_parallel && shard.tensor > 1;
  const double scattered = scatters && shards ? g.n / shard.tensor : 0;
  return Bytes(g.m * g.groups * element * (output + brought + scattered));
}

// Operators of the attention block that read its input, which is gathered again; and the one whose
// weight gradient comes right before theirs.
bool reads_attention_input(const Transformer& model, OperatorKind kind) {
  const bool latent_query = model.latent_attention && model.latent_attention->query_rank > 0;
  return kind == OperatorKind::qkv_projection || kind == OperatorKind::kv_down ||
         kind == (latent_query ? OperatorKind::query_down : OperatorKind::query_up);
}
OperatorKind before_attention_input(const Transformer& model) {
  if (!model.latent_attention) return OperatorKind::output_projection;
  return model.latent_attention->query_rank > 0 ? OperatorKind::query_up : OperatorKind::kv_up;
}

// Cast of a GEMM's input. It is repeated even where the GEMM is not, because the weight gradient
// reads it. Latent attention has two projections from one input: the query's has the cast
// (model/program/price.cpp).
Seconds input_cast(const Job& job, const Operator& op) {
  if (op.kind == OperatorKind::kv_down) return Seconds(0);
  return cast_time(job.cluster.device, job.training, op).forward;
}

void add_gather_cover(const Transformer& model, const Operator& op, const OperatorTime& time,
                      KernelTimes& times) {
  if (reads_attention_input(model, op.kind)) times.attention_cover.whole += time.input_gradient;
  if (op.kind == before_attention_input(model)) times.attention_cover.split = time.weight_gradient;
  switch (op.kind) {
    case OperatorKind::gather_copy: {  // attention's is the first of all
      const bool first = times.attention_cover.whole <= Seconds(0);
      (first ? times.attention_cover : times.mlp_cover).whole += time.input_gradient;
      break;
    }
    case OperatorKind::head_copy:
    case OperatorKind::mlp_up:
    case OperatorKind::shared_up:
    case OperatorKind::output_head:
      times.mlp_cover.whole += time.input_gradient;
      break;
    case OperatorKind::mtp_projection:
      times.mtp_cover.whole = time.input_gradient;
      break;
    case OperatorKind::mlp_down:
    case OperatorKind::shared_down:
      times.mlp_cover.split = time.weight_gradient;
      break;
    default:
      break;
  }
}

// Adds the kernels of the attention core (with the merge of ring attention), and what recomputing
// the core repeats and still saves.
void add_attention_core(const Operator& op, const OperatorTime& time, KernelTimes& times) {
  if (op.cls == OperatorClass::attention || op.kind == OperatorKind::ring_merge) {
    times.attention_core_forward += time.forward;
    times.attention_core_backward += time.input_gradient;
  }
  if (op.in_attention_core) {
    times.recomputed_core += time.forward;
  } else {
    times.saved_outside_core += op.saved;
  }
}

bool is_of_shared_experts(OperatorKind kind) {
  return kind == OperatorKind::shared_up || kind == OperatorKind::shared_activation ||
         kind == OperatorKind::shared_down;
}

KernelTimes sum_of(const PreparedJob& job, const LayerShard& shard, const OperatorList& operators,
                   const GemmTimeTable* gemms) {
  KernelTimes times;
  Bytes copied;
  GatheredKeys gathered(job.job.training, shard);
  bool behind_kept = false, before_experts = true;
  for (const Operator& op : operators) {
    const OperatorTime time = operator_time(job.job.cluster.device, job.job.training, op, gemms);
    before_experts = before_experts && op.kind != OperatorKind::expert_up;
    if (before_experts) times.before_experts += time.forward;
    if (is_of_shared_experts(op.kind)) {
      times.shared_experts_backward += time.input_gradient + time.weight_gradient;
    }
    times.all.forward += time.forward;
    times.all.input_gradient += time.input_gradient;
    times.all.weight_gradient += time.weight_gradient;
    times.saved += op.saved;
    times.gradients = std::max(times.gradients, gradient_bytes(job.job.training, op));
    gathered.add(op);
    times.between_halves += kept_between_halves(job.job.training, op);
    if (is_sequence_copy(op.kind)) copied = std::max(op.forward_traffic, op.backward_traffic) / 2;
    times.saved_by_every_second += saved_by_every_second(job.job, shard, op);
    add_attention_core(op, time, times);
    if (op.cls != OperatorClass::attention && !behind_kept) {
      const double share = every_second_share(job.job.model, op);
      times.every_second_matmul += time.forward * share + input_cast(job.job, op) * (1 - share);
    }
    behind_kept = behind_kept || ends_every_second(job.job.training.stack, op.kind);
    add_gather_cover(job.job.model, op, time, times);
    if (op.after_last_saved) times.after_last_saved += time.forward - input_cast(job.job, op);
  }
  times.gradients = std::max(times.gradients, gathered.most());
  times.gradients += copied;  // before it is scattered, beside its original
  return times;
}

OperatorList operators_of(const PreparedJob& job, const LayerShard& shard, TimedUnit unit) {
  const Transformer& model = job.job.model;
  const Training& training = job.job.training;
  switch (unit.end) {
    case TimedUnit::End::embedding:
      return embedding_operators(model, training, shard);
    case TimedUnit::End::head:
      return head_operators(model, training, shard);
    case TimedUnit::End::none:
      break;
  }
  return layer_operators(model, training, shard, layer_kind_at(model, unit.kind));
}

// The parts of a shard that the unit's operators read, so that more plans share an entry: only
// layers have attention, only some have experts.
LayerShard read_by(const Transformer& model, TimedUnit unit, LayerShard shard) {
  const bool layer = unit.end == TimedUnit::End::none;
  if (layer && layer_kind_at(model, unit.kind).moe) return shard;
  return {.tensor = shard.tensor,
          .sequence_parallel = shard.sequence_parallel,
          .context = shard.context,
          .context_algorithm = layer ? shard.context_algorithm : LayerShard{}.context_algorithm,
          .micro_batch = shard.micro_batch};
}

std::uint64_t hash_of(const LayerShard& shard, TimedUnit unit) {
  return KeyHash()
      .mix(shard.tensor)
      .mix(shard.sequence_parallel)
      .mix(shard.context)
      .mix(shard.context_algorithm)
      .mix(shard.expert)
      .mix(shard.expert_tensor)
      .mix(shard.micro_batch)
      .mix(unit.end)
      .mix(unit.kind)
      .value();
}

}  // namespace

KernelTimes kernel_times(const PreparedJob& job, const LayerShard& shard, TimedUnit unit) {
  return sum_of(job, shard, operators_of(job, shard, unit), nullptr);
}

KernelTimeTable::KernelTimeTable(const PreparedJob& job)
    : job_(job), gemms_(job.job.cluster.device) {}

KernelTimes KernelTimeTable::times(const LayerShard& of, TimedUnit unit) const {
  const LayerShard shard = read_by(job_.job.model, unit, of);
  return units_.value({shard, unit}, hash_of(shard, unit), [&] {
    return sum_of(job_, shard, operators_of(job_, shard, unit), &gemms_);
  });
}

}  // namespace trainyard
