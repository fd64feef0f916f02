// The attention half of a layer: norm, QKV projection, norm of the heads, rotary embedding, core,
// output projection, sum. Keys and values replicate where there are fewer heads than ranks.
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

constexpr BranchNames kNames = {
    .input = "attention input",
    .gathered = "attention gathered",
    .partial = "attention partial",
    .branch = "attention branch",
    .output_gradient = "attention output gradient",
    .inner_gradient = "attention context gradient",
    .regathered = "attention regathered",
    .input_gradient = "attention input gradient",
    .norm_gradient = "attention norm gradient",
};
constexpr NormNames kNormNames = {"attention norm scale", "attention norm scale gradient",
                                  "attention norm shift", "attention norm shift gradient"};

struct HeadWidths {
  Segment queries, keys;  // of all heads
};

HeadWidths head_widths(const Lowering& lowering) {
  const Transformer& model = lowering.model;
  const auto d = static_cast<std::int64_t>(model.head_dim);
  return {split(lowering, d * model.attention_heads), split_kv_heads(lowering, d * model.kv_heads)};
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
  const std::int64_t columns = part_of(widths.queries);
  LinearPart linear{.part = OperatorKind::output_projection,
                    .shape = gemm_shape(unit.lowering(), hidden, columns),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {unit.parameter({"attention output weight", "attention output weight gradient",
                                    hidden, columns, Cut{CutAxis::columns, {widths.queries}}},
                                   PartialGradient::none)};
  return linear;
}

AttentionShape core_shape(const Lowering& lowering, bool sliding) {
  const Transformer& model = lowering.model;
  const HeadWidths widths = head_widths(lowering);
  const auto sequence = static_cast<double>(lowering.training.sequence_length);
  const bool windowed = sliding && model.sliding_window < lowering.training.sequence_length;
  return {.batch = static_cast<double>(lowering.plan.micro_batch),
          .heads = static_cast<double>(part_of(widths.queries) / model.head_dim),
          .kv_heads = static_cast<double>(part_of(widths.keys) / model.head_dim),
          .queries = sequence,
          .keys = windowed ? model.sliding_window : sequence,
          .query_head_dim = static_cast<double>(model.head_dim),
          .value_head_dim = static_cast<double>(model.head_dim),
          .sliding = windowed};
}

Operation core_operation(const NetworkUnit& unit, const AttentionHalf& half, OperationKind kind) {
  return {.kind = kind,
          .part = OperatorKind::attention_core,
          .dtype = unit.lowering().training.precision.attention,
          .attention = half.shape};
}

int statistics_buffer(NetworkUnit& unit, const AttentionShape& shape) {
  const auto heads = static_cast<std::int64_t>(shape.heads);
  if (!unit.lowering().training.stack.flash_attention) {
    return unit.whole_activation("probabilities", heads * static_cast<std::int64_t>(shape.keys));
  }
  ProgramBuffer buffer{.name = "log-sum-exp", .dtype = Dtype::fp32, .element_bytes = 4};
  buffer.rows = unit.lowering().tokens;
  buffer.columns = heads;
  return unit.lowering().add(buffer);
}

Branch attention_branch(NetworkUnit& unit, const LayerMiddle& middle) {
  const Lowering& lowering = unit.lowering();
  Branch branch{.names = kNames,
                .norm = make_norm(unit, OperatorKind::attention_norm, kNormNames),
                .first = qkv_projection(unit),
                .last = output_projection(unit),
                .residual = OperatorKind::attention_residual,
                .stream = reads(lowering.hidden),
                .next = reads(middle.stream),
                .stream_gradient = reads(lowering.gradient),
                .next_gradient = reads(middle.gradient)};
  if (unit.model().biases) {
    branch.bias = unit.replicated(
        {"attention output bias", "attention output bias gradient", unit.model().hidden_size});
  }
  return branch;
}

// Queries, keys and values; with a norm of the heads the first two are raw before it.
void make_heads(NetworkUnit& unit, AttentionHalf& half) {
  const HeadWidths widths = head_widths(unit.lowering());
  const std::int64_t q = part_of(widths.queries);
  const std::int64_t kv = part_of(widths.keys);
  if (unit.model().qk_norm) {
    half.raw_queries = unit.whole_activation("raw queries", q);
    half.raw_keys = unit.whole_activation("raw keys", kv);
    const std::int64_t d = unit.model().head_dim;
    const bool shards = unit.lowering().plan.tensor_parallel > 1;
    const PartialGradient partial = shards ? PartialGradient::tensor : PartialGradient::none;
    half.query_scale =
        unit.parameter({"query norm scale", "query norm scale gradient", d}, partial);
    half.key_scale = unit.parameter({"key norm scale", "key norm scale gradient", d}, partial);
  }
  half.queries = unit.whole_activation("queries", q);
  half.keys = unit.whole_activation("keys", kv);
  half.values = unit.whole_activation("values", kv);
  half.branch.firsts = {half.queries, half.keys, half.values};
  if (unit.model().qk_norm) half.branch.firsts = {half.raw_queries, half.raw_keys, half.values};
}

void append_heads_forward(NetworkUnit& unit, const AttentionHalf& half) {
  if (unit.model().qk_norm) {
    Operation op{.kind = OperationKind::head_norm,
                 .part = OperatorKind::qk_norm,
                 .dtype = unit.lowering().dtype};
    op.operands = {reads(half.raw_queries),        reads(half.raw_keys),
                   reads(half.query_scale.weight), reads(half.key_scale.weight),
                   creates(half.queries),          creates(half.keys)};
    unit.add(Phase::forward, op);
  }
  if (!unit.model().learned_positions) {
    Operation op{.kind = OperationKind::rotary,
                 .part = OperatorKind::rotary,
                 .dtype = unit.lowering().dtype};
    op.operands = {updates(half.queries), updates(half.keys)};
    unit.add(Phase::forward, op);
  }
}

// The scores again; the output of the first time was kept.
void repeat_core(NetworkUnit& unit, const AttentionHalf& half) {
  const HeadWidths widths = head_widths(unit.lowering());
  Operation core = core_operation(unit, half, OperationKind::attention);
  const int context = unit.whole_activation("attention context again", part_of(widths.queries));
  core.operands = {reads(half.queries), reads(half.keys), reads(half.values), creates(context),
                   creates(half.statistics)};
  unit.repeat(core);
}

struct HeadGradients {
  int queries = -1, keys = -1, values = -1;
};

// From the gradients of what the core reads to those of what the projection writes.
HeadGradients append_heads_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                    HeadGradients of) {
  if (!unit.model().learned_positions) {
    Operation op{.kind = OperationKind::rotary_gradient,
                 .part = OperatorKind::rotary,
                 .dtype = unit.lowering().dtype};
    op.operands = {updates(of.queries), updates(of.keys)};
    unit.add(Phase::input_gradient, op);
  }
  if (!unit.model().qk_norm) return of;
  const HeadWidths widths = head_widths(unit.lowering());
  HeadGradients raw = of;
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

AttentionHalf append_attention(NetworkUnit& unit, LayerKind kind, const LayerMiddle& middle) {
  AttentionHalf half{.branch = attention_branch(unit, middle),
                     .shape = core_shape(unit.lowering(), kind.sliding)};
  make_heads(unit, half);
  begin_branch(unit, half.branch);
  append_heads_forward(unit, half);
  half.branch.inner =
      unit.whole_activation("attention context", part_of(head_widths(unit.lowering()).queries));
  half.statistics = statistics_buffer(unit, half.shape);
  Operation core = core_operation(unit, half, OperationKind::attention);
  core.operands = {reads(half.queries), reads(half.keys), reads(half.values),
                   creates(half.branch.inner), creates(half.statistics)};
  unit.add(Phase::forward, core);
  end_branch(unit, half.branch);
  return half;
}

void append_attention_gradient(NetworkUnit& unit, const AttentionHalf& half, bool repeats_core) {
  const HeadWidths widths = head_widths(unit.lowering());
  const int context_gradient = begin_branch_gradient(unit, half.branch);
  const HeadGradients core_gradients = {
      unit.whole_activation("query gradient", part_of(widths.queries)),
      unit.whole_activation("key gradient", part_of(widths.keys)),
      unit.whole_activation("value gradient", part_of(widths.keys))};
  if (repeats_core) repeat_core(unit, half);
  Operation core = core_operation(unit, half, OperationKind::attention_gradient);
  core.operands = {reads(half.queries),
                   reads(half.keys),
                   reads(half.values),
                   reads(half.branch.inner),
                   reads(half.statistics),
                   reads(context_gradient),
                   creates(core_gradients.queries),
                   creates(core_gradients.keys),
                   creates(core_gradients.values)};
  unit.add(Phase::input_gradient, core);
  const HeadGradients raw = append_heads_gradient(unit, half, core_gradients);
  end_branch_gradient(unit, half.branch, {reads(raw.queries), reads(raw.keys), reads(raw.values)});
}

}  // namespace trainyard
