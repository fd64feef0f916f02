// The attention half of a layer: norm, QKV projection, norm of the heads, rotary embedding, core,
// output projection, sum. Keys and values are replicated if there are fewer KV heads than ranks.
#include <algorithm>

#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

constexpr BranchNames kAttentionNames = {
    .input = "attention input",
    .gathered = "attention gathered",
    .partial = "attention partial",
    .branch = "attention branch",
    .mask = "attention dropout mask",
    .branch_gradient = "attention branch gradient",
    .output_gradient = "attention output gradient",
    .inner_gradient = "attention context gradient",
    .regathered = "attention regathered",
    .input_gradient = "attention input gradient",
    .norm_gradient = "attention norm gradient",
};
constexpr NormNames kAttentionNormNames = {"attention norm scale", "attention norm scale gradient",
                                           "attention norm shift", "attention norm shift gradient"};

struct HeadWidths {
  Segment queries, keys, values, output;  // of all heads
};

HeadWidths head_widths(const Lowering& lowering) {
  const Transformer& model = lowering.model;
  const std::int64_t heads = model.attention_heads;
  const Segment queries = split(lowering, heads * query_head_dim(model));
  const Segment output = split(lowering, heads * value_head_dim(model));
  if (model.latent_attention) return {queries, queries, output, output};
  const Segment keys = split_kv_heads(lowering, std::int64_t{model.head_dim} * model.kv_heads);
  return {queries, keys, keys, output};
}

LinearPart qkv_projection(NetworkUnit& unit) {
  const HeadWidths widths = head_widths(unit.lowering());
  const Cut queries{CutAxis::rows, {widths.queries}};
  const Cut keys_values{CutAxis::rows, {widths.keys, widths.keys}};
  const PartialGradient partial =
      widths.keys.replicas > 1 ? PartialGradient::kv_head : PartialGradient::none;
  const std::int64_t hidden = unit.model().hidden_size;
  const std::int64_t query_rows = part_of(widths.queries);
  const std::int64_t kv_rows = 2 * part_of(widths.keys);
  LinearPart linear{.part = OperatorKind::qkv_projection,
                    .shape = gemm_shape(unit.lowering(), query_rows + kv_rows, hidden),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {
      unit.parameter({"query weight", "query weight gradient", query_rows, hidden, queries},
                     PartialGradient::none),
      unit.parameter({"kv weight", "kv weight gradient", kv_rows, hidden, keys_values}, partial)};
  if (unit.model().biases || unit.model().qkv_biases) {
    linear.biases = {
        unit.parameter({"query bias", "query bias gradient", query_rows, 1, queries},
                       PartialGradient::none),
        unit.parameter({"kv bias", "kv bias gradient", kv_rows, 1, keys_values}, partial)};
  }
  return linear;
}

LinearPart output_projection(NetworkUnit& unit) {
  const HeadWidths widths = head_widths(unit.lowering());
  const std::int64_t hidden = unit.model().hidden_size;
  const std::int64_t columns = part_of(widths.output);
  LinearPart linear{.part = OperatorKind::output_projection,
                    .shape = gemm_shape(unit.lowering(), hidden, columns),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {unit.parameter({"attention output weight", "attention output weight gradient",
                                    hidden, columns, Cut{CutAxis::columns, {widths.output}}},
                                   PartialGradient::none)};
  return linear;
}

AttentionShape core_shape(const Lowering& lowering, bool sliding) {
  const Transformer& model = lowering.model;
  const Plan& plan = lowering.plan;
  const HeadWidths widths = head_widths(lowering);
  const auto sequence = static_cast<double>(lowering.training.sequence_length);
  const bool windowed = sliding && model.sliding_window < lowering.training.sequence_length;
  // Ulysses deals the heads over the context ranks, the other algorithms the queries.
  const bool dealt = plan.context_parallel_algorithm == ContextAlgorithm::ulysses;
  const int head_shards = dealt ? plan.context_parallel : 1;
  const int query_shards = dealt ? 1 : plan.context_parallel;
  const auto heads_of = [&](const Segment& segment) {
    const std::int64_t heads = part_of(segment) / query_head_dim(model);
    return static_cast<double>(heads);
  };
  return {.batch = static_cast<double>(plan.micro_batch),
          .heads = heads_of(widths.queries) / head_shards,
          .kv_heads = std::max(1.0, heads_of(widths.keys) / head_shards),
          .queries = sequence / query_shards,
          .keys = windowed ? model.sliding_window : sequence,
          .query_head_dim = static_cast<double>(query_head_dim(model)),
          .value_head_dim = static_cast<double>(value_head_dim(model)),
          .sliding = windowed};
}

Branch attention_branch(NetworkUnit& unit, const LayerInput& input, const LayerMiddle& middle) {
  Branch branch{.names = kAttentionNames,
                .norm = make_norm(unit, OperatorKind::attention_norm, kAttentionNormNames),
                .last = output_projection(unit),
                .residual = OperatorKind::attention_residual,
                .stream = input.stream,
                .next = reads(middle.stream),
                .stream_gradient = input.gradient,
                .next_gradient = reads(middle.gradient)};
  if (!unit.model().latent_attention) branch.first = qkv_projection(unit);
  if (unit.model().biases) {
    branch.bias = unit.replicated(
        {"attention output bias", "attention output bias gradient", unit.model().hidden_size});
  }
  return branch;
}

// Whether queries and keys have a norm of the heads; the norm of latent vectors is another one.
bool has_head_norm(const NetworkUnit& unit) {
  return unit.model().qk_norm && !unit.model().latent_attention;
}

// Makes the buffers of queries, keys and values, and of the first two before a norm of the heads.
void make_heads(NetworkUnit& unit, AttentionHalf& half) {
  const HeadWidths widths = head_widths(unit.lowering());
  const std::int64_t q = part_of(widths.queries);
  const std::int64_t kv = part_of(widths.keys);
  if (has_head_norm(unit)) {
    half.raw_queries = unit.whole_activation("raw queries", q);
    half.raw_keys = unit.whole_activation("raw keys", kv);
    const std::int64_t d = unit.model().head_dim;
    const bool shards = unit.lowering().plan.tensor_parallel > 1;
    const PartialGradient partial = shards ? PartialGradient::tensor : PartialGradient::none;
    half.query_scale =
        unit.parameter({"query norm scale", "query norm scale gradient", d}, partial);
    half.key_scale = unit.parameter({"key norm scale", "key norm scale gradient", d}, partial);
  }
  half.heads.queries = unit.whole_activation("queries", q);
  half.heads.keys = unit.whole_activation("keys", kv);
  half.heads.values = unit.whole_activation("values", part_of(widths.values));
  half.branch.firsts = {half.heads.queries, half.heads.keys, half.heads.values};
  if (has_head_norm(unit))
    half.branch.firsts = {half.raw_queries, half.raw_keys, half.heads.values};
}

void append_heads_forward(NetworkUnit& unit, const AttentionHalf& half) {
  if (has_head_norm(unit)) {
    Operation op{.kind = OperationKind::head_norm,
                 .part = OperatorKind::qk_norm,
                 .dtype = unit.lowering().dtype};
    op.operands = {reads(half.raw_queries),        reads(half.raw_keys),
                   reads(half.query_scale.weight), reads(half.key_scale.weight),
                   creates(half.heads.queries),    creates(half.heads.keys)};
    unit.add(Phase::forward, op);
  }
  if (!unit.model().learned_positions) {
    Operation op{.kind = OperationKind::rotary,
                 .part = OperatorKind::rotary,
                 .dtype = unit.lowering().dtype};
    op.operands = {updates(half.heads.queries), updates(half.heads.keys)};
    unit.add(Phase::forward, op);
  }
}

Parameter make_sinks(NetworkUnit& unit) {
  const Segment heads = split(unit.lowering(), unit.model().attention_heads);
  return unit.parameter({"attention sinks", "attention sinks gradient", part_of(heads), 1,
                         Cut{CutAxis::rows, {heads}}},
                        PartialGradient::none);
}

// From the gradients of the core's inputs to those of the projection's outputs.
HeadBuffers append_heads_gradient(NetworkUnit& unit, const AttentionHalf& half, HeadBuffers of) {
  if (!unit.model().learned_positions) {
    Operation op{.kind = OperationKind::rotary_gradient,
                 .part = OperatorKind::rotary,
                 .dtype = unit.lowering().dtype};
    op.operands = {updates(of.queries), updates(of.keys)};
    unit.add(Phase::input_gradient, op);
  }
  if (!has_head_norm(unit)) return of;
  const HeadWidths widths = head_widths(unit.lowering());
  HeadBuffers raw = of;
  raw.queries = unit.whole_activation("raw query gradient", part_of(widths.queries));
  raw.keys = unit.whole_activation("raw key gradient", part_of(widths.keys));
  Operation op{.kind = OperationKind::head_norm_gradient,
               .part = OperatorKind::qk_norm,
               .dtype = unit.lowering().dtype};
  op.operands = {reads(half.raw_queries),
                 reads(half.raw_keys),
                 reads(of.queries),
                 reads(of.keys),
                 reads(half.query_scale.weight),
                 reads(half.key_scale.weight),
                 creates(raw.queries),
                 creates(raw.keys),
                 updates(half.query_scale.gradient),
                 updates(half.key_scale.gradient)};
  unit.add(Phase::input_gradient, op);
  return raw;
}

}  // namespace

AttentionHalf append_attention(NetworkUnit& unit, LayerKind kind, const LayerInput& input,
                               const LayerMiddle& middle) {
  const HeadWidths widths = head_widths(unit.lowering());
  AttentionHalf half{.branch = attention_branch(unit, input, middle),
                     .shape = core_shape(unit.lowering(), kind.sliding),
                     .queries_cut = widths.queries,
                     .keys_cut = widths.keys,
                     .values_cut = widths.values};
  make_heads(unit, half);
  if (unit.model().latent_attention) {
    append_latent_heads(unit, half);
  } else {
    begin_branch(unit, half.branch);
    append_heads_forward(unit, half);
  }
  if (unit.model().attention_sinks) half.sinks = make_sinks(unit);
  half.branch.inner = unit.whole_activation("attention context", part_of(widths.output));
  append_core(unit, half);
  end_branch(unit, half.branch);
  return half;
}

void append_attention_gradient(NetworkUnit& unit, const AttentionHalf& half, Repeats repeats) {
  const int context_gradient = begin_branch_gradient(unit, half.branch);
  const HeadBuffers gradients = append_core_gradient(unit, half, context_gradient, repeats);
  if (unit.model().latent_attention) {
    return append_latent_heads_gradient(unit, half, gradients);
  }
  const HeadBuffers raw = append_heads_gradient(unit, half, gradients);
  end_branch_gradient(unit, half.branch, {reads(raw.queries), reads(raw.keys), reads(raw.values)});
}

}  // namespace trainyard
