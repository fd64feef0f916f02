// The attention half of a layer: projections (plain, grouped-query or latent), rotary embedding,
// core and output projection.
#include <algorithm>

#include "model/workload/operator_context.h"

namespace trainyard {
namespace {

AttentionShape core_shape(const OperatorContext& context, bool sliding) {
  const Transformer& model = context.model;
  const auto sequence = static_cast<double>(context.training.sequence_length);
  const double ranks = context.shard.context;
  // Ulysses deals the heads over the context ranks instead of the queries.
  const bool ulysses = context.shard.context_algorithm == ContextAlgorithm::ulysses;
  const double head_shards = context.tensor * (ulysses ? ranks : 1);
  const bool windowed = sliding && model.sliding_window < sequence;
  AttentionShape shape;
  shape.batch = context.shard.micro_batch;
  shape.heads = model.attention_heads / head_shards;
  // A rank holds at least one KV head: they replicate when there are fewer than ranks.
  shape.kv_heads =
      model.latent_attention ? shape.heads : std::max(1.0, model.kv_heads / head_shards);
  shape.context_ranks = ulysses ? 1 : ranks;
  shape.queries = sequence / shape.context_ranks;
  shape.keys = windowed ? model.sliding_window : sequence;
  shape.query_head_dim = query_head_dim(model);
  shape.value_head_dim = value_head_dim(model);
  shape.sliding = windowed;
  if (context.shard.context_algorithm == ContextAlgorithm::ring && !windowed) shape.blocks = ranks;
  return shape;
}

// Bytes of Q, and of K and V together, that the core keeps.
double saved_queries(const OperatorContext& context, const AttentionShape& core) {
  return context.activation * core.batch * core.queries * core.heads * core.query_head_dim;
}

double saved_keys_values(const OperatorContext& context, const AttentionShape& core) {
  return context.activation * core.batch * core.queries * core.kv_heads *
         (core.query_head_dim + core.value_head_dim);
}

double saved_input(const OperatorContext& context) {
  return context.gemm_input * context.input_tokens * context.hidden;
}

void append_qkv(const OperatorContext& context, const AttentionShape& core, OperatorList& list) {
  const Transformer& model = context.model;
  const double d = model.head_dim;
  const double heads = model.attention_heads / context.tensor;
  const double kv_heads = std::max(1.0, model.kv_heads / context.tensor);
  const double columns = d * (heads + 2 * kv_heads);
  const double whole = d * (model.attention_heads + 2.0 * model.kv_heads);
  Operator projection = layer_gemm(
      context, OperatorKind::qkv_projection,
      {.m = context.tokens, .n = columns, .k = context.hidden},
      saved_input(context) + saved_queries(context, core) + saved_keys_values(context, core));
  projection.replicas = columns * context.tensor / whole;
  if (model.biases || model.qkv_biases) projection.weights += columns;
  if (context.training.stack.eager_gradients) {  // their gradients are read and written as one
    projection.backward_traffic += Bytes(2 * context.activation * context.tokens * columns);
  }
  list.push_back(projection);

  const double queries_keys = context.tokens * d * (heads + kv_heads);
  if (model.qk_norm) list.push_back(norm(context, OperatorKind::qk_norm, queries_keys, 2 * d));
  if (!model.learned_positions) {
    const double traffic = 2 * context.activation * queries_keys;
    list.push_back(memory_bound(OperatorKind::rotary, traffic, traffic, 0));
  }
}

// Down-projections to the latent vectors; every tensor-parallel rank repeats them.
void append_latent_down(const OperatorContext& context, OperatorList& list) {
  const LatentAttention& latent = *context.model.latent_attention;
  const double bias = context.model.biases ? 1 : 0;
  const auto down = [&](OperatorKind kind, double width, double saved) {
    Operator op =
        layer_gemm(context, kind, {.m = context.tokens, .n = width, .k = context.hidden}, saved);
    op.replicas = context.tensor;
    op.weights += bias * width;
    list.push_back(op);
  };
  // Query and KV read the same input, which is kept once: by query_down, or without a query rank by
  // the query's only projection (append_latent_up).
  if (latent.query_rank > 0) {
    down(OperatorKind::query_down, latent.query_rank, saved_input(context));
  }
  down(OperatorKind::kv_down, latent.kv_rank + latent.rope_head_dim, 0);
  const double ranks = latent.query_rank + latent.kv_rank;
  list.push_back(norm(context, OperatorKind::qk_norm, context.tokens * ranks, ranks));
}

void append_latent_up(const OperatorContext& context, const AttentionShape& core,
                      OperatorList& list) {
  const LatentAttention& latent = *context.model.latent_attention;
  const double heads = context.model.attention_heads / context.tensor;
  const double bias = context.model.biases ? 1 : 0;
  const auto up = [&](OperatorKind kind, double width, double rank, double saved) {
    Operator op = layer_gemm(context, kind, {.m = context.tokens, .n = width, .k = rank}, saved);
    op.weights += bias * width;
    list.push_back(op);
  };
  const bool ranked = latent.query_rank > 0;
  up(OperatorKind::query_up, heads * core.query_head_dim,
     ranked ? latent.query_rank : context.hidden,
     (ranked ? context.gemm_input * context.tokens * latent.query_rank : saved_input(context)) +
         saved_queries(context, core));
  up(OperatorKind::kv_up, heads * (latent.nope_head_dim + core.value_head_dim), latent.kv_rank,
     context.gemm_input * context.tokens * latent.kv_rank + saved_keys_values(context, core));
  // Rotates a part of the queries in place and assembles the keys from their two parts.
  const double traffic = 2 * context.activation * context.tokens * heads *
                         (latent.rope_head_dim + core.query_head_dim);
  list.push_back(memory_bound(OperatorKind::rotary, traffic, traffic, 0));
}

// Unfused attention: the score matrix passes through memory (batched GEMM, softmax, dropout,
// batched GEMM). Forward writes and reads scores and probabilities, 4 passes of 2 bytes; dropout
// reads and writes them and keeps a mask: 13 bytes a score in all. Backward has 7 passes; with
// dropout 9 and the mask: 19 bytes.
void add_score_matrix(const OperatorContext& context, Operator& core) {
  const AttentionShape& shape = core.attention;
  const double scores = shape.batch * shape.heads * shape.queries * shape.keys;
  const double element = context.activation;
  if (context.training.stack.dropout) {
    core.forward_traffic = Bytes(scores * (6 * element + 1));
    core.backward_traffic = Bytes(scores * (9 * element + 1));
    core.saved = Bytes(scores * (2 * element + 1));  // softmax, mask, dropout output
  } else {
    core.forward_traffic = Bytes(scores * 4 * element);
    core.backward_traffic = Bytes(scores * 7 * element);
    core.saved = Bytes(scores * element);
  }
  core.in_attention_core = true;
}

// A flash kernel keeps the log-sum-exp of each row in fp32, and its output. The output is shared
// with the output projection, whose input it is, unless the projection keeps a cast copy or heads
// are exchanged between the two (Ulysses: Jacobs et al. 2023, §3.1): then the kernel has some heads
// of all tokens and the projection all heads of some tokens, and autograd keeps both.
Bytes saved_by_flash(const OperatorContext& context, const AttentionShape& shape) {
  const double rows = shape.batch * shape.heads * shape.queries;
  const bool exchanged =
      context.shard.context > 1 && context.shard.context_algorithm == ContextAlgorithm::ulysses;
  const bool own_output = exchanged || context.training.precision.casts_gemm_inputs();
  return Bytes(rows * (4 + (own_output ? context.activation * shape.value_head_dim : 0)));
}

void append_core(const OperatorContext& context, const AttentionShape& shape, OperatorList& list) {
  Operator core;
  core.kind = OperatorKind::attention_core;
  core.cls = OperatorClass::attention;
  core.attention = shape;
  core.forward = Flops(2 * shape.batch * shape.heads * shape.queries * shape.keys *
                       (shape.query_head_dim + shape.value_head_dim));
  if (context.model.attention_sinks) core.weights = context.model.attention_heads / context.tensor;
  if (context.training.stack.flash_attention) {
    core.saved = saved_by_flash(context, shape);
  } else {
    add_score_matrix(context, core);
  }
  list.push_back(core);
}

// Each step of ring attention makes a partial output (16 bits), which is rescaled and added to the
// running output in fp32; that is cast at the end. Backward adds up the steps' gradients of
// queries, keys and values in 16 bits (Transformer Engine, attention with context parallelism).
void append_ring_merge(const OperatorContext& context, const AttentionShape& core,
                       OperatorList& list) {
  const LayerShard& shard = context.shard;
  if (shard.context == 1 || shard.context_algorithm != ContextAlgorithm::ring) return;
  const double steps = shard.context;
  const double rows = core.batch * core.queries;
  const double output = rows * core.heads * core.value_head_dim;
  const double queries = rows * core.heads * core.query_head_dim;
  const double keys_values = rows * core.kv_heads * (core.query_head_dim + core.value_head_dim);
  const double element = context.activation;
  const double running = 4;
  list.push_back(memory_bound(OperatorKind::ring_merge,
                              output * (steps * (element + 2 * running) + running + element),
                              steps * 3 * element * (queries + keys_values), 0));
}

void append_output_projection(const OperatorContext& context, OperatorList& list) {
  const double heads = context.model.attention_heads;
  const double rows = heads * value_head_dim(context.model) / context.tensor;
  Operator projection = layer_gemm(context, OperatorKind::output_projection,
                                   {.m = context.tokens, .n = context.hidden, .k = rows},
                                   context.gemm_input * context.tokens * rows);
  if (context.model.biases) projection.weights += context.hidden;
  list.push_back(projection);
}

}  // namespace

void append_attention(const OperatorContext& context, bool sliding, OperatorList& list) {
  const AttentionShape core = core_shape(context, sliding);
  append_sequence_copy(context, OperatorKind::gather_copy, list);
  if (context.model.latent_attention) {
    append_latent_down(context, list);
    append_latent_up(context, core, list);
  } else {
    append_qkv(context, core, list);
  }
  append_core(context, core, list);
  append_ring_merge(context, core, list);
  append_output_projection(context, list);
  append_sequence_copy(context, OperatorKind::scatter_copy, list);
}

}  // namespace trainyard
