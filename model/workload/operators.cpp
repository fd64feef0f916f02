#include "model/workload/operators.h"

#include <algorithm>
#include <cmath>

#include "model/workload/operator_context.h"

namespace trainyard {
namespace {

// Adds the branch to the stream: two reads, one write; backward adds the branch's gradient to the
// stream's. Dropout reads and writes the branch once more and keeps a mask of one byte.
Operator residual(const OperatorContext& context, OperatorKind kind) {
  const double elements = context.local_tokens * context.hidden;
  const double add = 3 * context.activation;
  if (!context.training.stack.dropout) {
    return memory_bound(kind, elements * add, elements * add, 0);
  }
  // The forward kernel is fused, so dropout only adds the mask. Backward has a kernel of its own.
  return memory_bound(kind, elements * (add + 1), elements * (add + 2 * context.activation + 1),
                      elements);
}

}  // namespace

OperatorContext operator_context(const Transformer& model, const Training& training,
                                 const LayerShard& shard) {
  const double tokens = static_cast<double>(training.sequence_length) * shard.micro_batch /
                        static_cast<double>(shard.context);
  const double tensor = shard.tensor;
  const double local = shard.sequence_parallel ? tokens / tensor : tokens;
  return {.model = model,
          .training = training,
          .shard = shard,
          .hidden = static_cast<double>(model.hidden_size),
          .tensor = tensor,
          .tokens = tokens,
          .local_tokens = local,
          .input_tokens = training.stack.keeps_gathered_inputs ? tokens : local,
          .activation = training.precision.activation_bytes,
          .gemm_input = training.precision.saved_gemm_input_bytes};
}

Operator memory_bound(OperatorKind kind, double forward_bytes, double backward_bytes,
                      double saved_bytes) {
  Operator op;
  op.kind = kind;
  op.cls = OperatorClass::memory_bound;
  op.forward_traffic = Bytes(forward_bytes);
  op.backward_traffic = Bytes(backward_bytes);
  op.saved = Bytes(saved_bytes);
  return op;
}

Operator gemm(OperatorKind kind, const GemmShape& shape, double saved_bytes) {
  Operator op;
  op.kind = kind;
  op.cls = OperatorClass::gemm;
  op.gemm = shape;
  op.weights = shape.n * shape.k * shape.groups;
  op.forward = Flops(2 * shape.m * op.weights);
  op.saved = Bytes(saved_bytes);
  return op;
}

Operator layer_gemm(const OperatorContext& context, OperatorKind kind, const GemmShape& shape,
                    double saved_bytes) {
  Operator op = gemm(kind, shape, saved_bytes);
  const PrecisionRecipe& precision = context.training.precision;
  const double element = precision.quantisation_bytes -
                         (context.training.stack.delayed_scaling ? precision.scale_bytes : 0);
  const double cast = element * shape.m * shape.groups;
  op.forward_traffic = Bytes(cast * shape.k);
  op.backward_traffic = Bytes(cast * shape.n);
  // In a compiled layer the partitioner keeps the cast weights for the input gradient, because it
  // takes that for cheaper than casting once more; it keeps them whole, whatever FSDP shards
  // (pytorch/ao pull request 936, issue 562; pytorch/torchtitan, docs/float8.md,
  // force_recompute_fp8_weight_in_bwd).
  if (context.training.stack.compiled && precision.casts_gemm_inputs()) {
    op.saved += Bytes(op.weights * precision.saved_gemm_input_bytes);
  }
  // The gradient of a bias: a kernel of its own sums the output's gradient over the tokens.
  const bool of_qkv = kind == OperatorKind::qkv_projection && context.model.qkv_biases;
  const bool has_bias = of_qkv || (context.model.biases && kind != OperatorKind::mtp_projection);
  if (context.training.stack.eager_gradients && has_bias) {
    op.backward_traffic += Bytes(context.activation * shape.m * shape.n * shape.groups);
  }
  return op;
}

Operator norm(const OperatorContext& context, OperatorKind kind, double elements, double weights) {
  const double bytes = elements * context.activation;
  // The eager kernel of the weights' gradient reads input and output gradient once more.
  const double backward = context.training.stack.eager_gradients ? 5 : 3;
  Operator op = memory_bound(kind, 2 * bytes, backward * bytes, bytes);
  op.weights = weights;
  return op;
}

Operator hidden_norm(const OperatorContext& context, OperatorKind kind) {
  const double vectors = context.model.norm == Norm::rms_norm ? 1 : 2;
  return norm(context, kind, context.local_tokens * context.hidden, vectors * context.hidden);
}

bool is_sequence_copy(OperatorKind kind) {
  return kind == OperatorKind::gather_copy || kind == OperatorKind::scatter_copy ||
         kind == OperatorKind::embedding_copy || kind == OperatorKind::head_copy;
}

void append_sequence_copy(const OperatorContext& context, OperatorKind kind, OperatorList& list) {
  const Stack& stack = context.training.stack;
  const bool sharded = context.shard.sequence_parallel && context.shard.tensor > 1;
  if (!stack.copies_sharded_sequences || !sharded) return;
  const double elements = 2 * context.tokens * context.hidden;
  const bool in_layer = kind == OperatorKind::gather_copy || kind == OperatorKind::scatter_copy;
  const double summed = elements * context.activation;
  const double gathered = in_layer && stack.quantised_gathers ? elements * context.gemm_input
                                                              : elements * context.activation;
  const bool gathers = kind == OperatorKind::gather_copy || kind == OperatorKind::head_copy;
  list.push_back(gathers ? memory_bound(kind, gathered, summed, 0)
                         : memory_bound(kind, summed, gathered, 0));
}

namespace {

// The column-parallel projection of an MTP layer; its output is gathered (Megatron-Core eh_proj).
void append_mtp_input(const OperatorContext& context, OperatorList& list) {
  const double elements = context.local_tokens * context.hidden;
  list.push_back(hidden_norm(context, OperatorKind::mtp_embedding_norm));
  list.push_back(hidden_norm(context, OperatorKind::mtp_state_norm));
  list.push_back(memory_bound(OperatorKind::mtp_concatenation, 4 * elements * context.activation,
                              3 * elements * context.activation, 0));
  const double inputs = 2 * context.hidden;
  list.push_back(
      layer_gemm(context, OperatorKind::mtp_projection,
                 {.m = context.tokens, .n = context.hidden / context.tensor, .k = inputs},
                 context.gemm_input * context.local_tokens * inputs));
}

// Marks the last GEMM and what follows it: backward needs its input, but nothing that comes after.
void mark_after_last_saved(OperatorList& list) {
  std::size_t last = list.size();
  while (last > 0 && list[last - 1].cls == OperatorClass::memory_bound) --last;
  for (std::size_t i = last == 0 ? 0 : last - 1; i < list.size(); ++i) {
    list[i].after_last_saved = true;
  }
}

}  // namespace

double expert_capacity(double tokens, int experts_per_token, int experts, double factor) {
  const double mean = tokens * experts_per_token / experts;
  // 100 tokens times 1.1 are 110, not the next integer above the rounded product.
  return std::ceil(mean * factor * (1 - 1e-12));
}

double possible_load(const Transformer& model, const LayerShard& shard) {
  if (model.experts == 0) return 1;
  const double of_tokens = static_cast<double>(model.experts) / model.experts_per_token;
  return std::min({shard.load_imbalance, static_cast<double>(shard.expert), of_tokens});
}

double routed_load(const Transformer& model, const LayerShard& shard, double tokens) {
  const double load = possible_load(model, shard);
  if (shard.capacity_factor == 0) return load;
  const double mean = tokens * model.experts_per_token / model.experts;
  const double capacity =
      expert_capacity(tokens, model.experts_per_token, model.experts, shard.capacity_factor);
  return std::min(load, capacity / mean);
}

OperatorList layer_operators(const Transformer& model, const Training& training,
                             const LayerShard& shard, LayerKind kind) {
  const OperatorContext context = operator_context(model, training, shard);
  OperatorList list;
  if (kind.mtp) append_mtp_input(context, list);
  list.push_back(hidden_norm(context, OperatorKind::attention_norm));
  append_attention(context, kind.sliding, list);
  list.push_back(residual(context, OperatorKind::attention_residual));
  list.push_back(hidden_norm(context, OperatorKind::mlp_norm));
  if (kind.moe) {
    append_experts(context, list);
  } else {
    append_dense_mlp(context, list);
  }
  list.push_back(residual(context, OperatorKind::mlp_residual));
  mark_after_last_saved(list);
  return list;
}

OperatorList embedding_operators(const Transformer& model, const Training& training,
                                 const LayerShard& shard) {
  const OperatorContext context = operator_context(model, training, shard);
  const double elements = context.tokens * context.hidden;
  const double local = context.local_tokens * context.hidden;
  const double gradient = kept_gradient_bytes(training);
  const double table = training.precision.weight_bytes;
  // A rank looks up the tokens in its own 1/t of the table, writes all rows (zeros for other
  // tokens), and in backward adds the gradients of its own rows to the main gradient.
  Operator op = memory_bound(OperatorKind::embedding,
                             elements * (table / context.tensor + context.activation),
                             elements * (context.activation + 2 * gradient / context.tensor), 0);
  op.weights = static_cast<double>(padded_vocabulary(model.vocabulary, shard.tensor)) *
               context.hidden / context.tensor;
  if (model.learned_positions) {
    op.weights += static_cast<double>(training.sequence_length) * context.hidden;
    op.forward_traffic += Bytes(local * (2 * context.activation + table));
    op.backward_traffic += Bytes(local * (context.activation + 2 * gradient));
  }
  if (training.stack.dropout) {
    op.forward_traffic += Bytes(local * (2 * context.activation + 1));
    op.backward_traffic += Bytes(local * (2 * context.activation + 1));
    op.saved += Bytes(local);
  }
  OperatorList list;
  list.push_back(op);
  append_sequence_copy(context, OperatorKind::embedding_copy, list);
  return list;
}

OperatorList head_operators(const Transformer& model, const Training& training,
                            const LayerShard& shard) {
  const OperatorContext context = operator_context(model, training, shard);
  const auto padded = static_cast<double>(padded_vocabulary(model.vocabulary, shard.tensor));
  const double columns = padded / context.tensor;
  Operator head =
      gemm(OperatorKind::output_head, {.m = context.tokens, .n = columns, .k = context.hidden},
           context.input_tokens * context.hidden * context.activation);
  head.replicas = padded / static_cast<double>(model.vocabulary);
  const double logits = context.tokens * columns;
  OperatorList list;
  list.push_back(hidden_norm(context, OperatorKind::final_norm));
  append_sequence_copy(context, OperatorKind::head_copy, list);
  list.push_back(head);
  list.push_back(memory_bound(OperatorKind::cross_entropy,
                              logits * training.stack.cross_entropy_forward_bytes,
                              logits * training.stack.cross_entropy_backward_bytes, 0));
  return list;
}

std::int64_t padded_vocabulary(std::int64_t vocabulary, int tensor_parallel) {
  return (vocabulary + tensor_parallel - 1) / tensor_parallel * tensor_parallel;
}

Bytes layer_input_bytes(const Transformer& model, const Training& training,
                        const LayerShard& shard) {
  const OperatorContext context = operator_context(model, training, shard);
  return Bytes(context.local_tokens * context.hidden * context.activation);
}

}  // namespace trainyard
