// Multi-head latent attention (DeepSeek-V2, 2024, §2.1). Queries, keys and values come from latent
// vectors, which every tensor-parallel rank computes for all tokens; each rank then builds its own
// heads from them. So a rank has only its heads' contribution to the gradient of a latent vector.
// Everything before it is linear in that gradient, so the sum over ranks is taken later: in the
// gradients of the input and of the down-projections' weights.
#include "model/program/parts/parts.h"

namespace trainyard {
namespace {

const LatentAttention& latent_of(const NetworkUnit& unit) { return *unit.model().latent_attention; }

Parameter shared(NetworkUnit& unit, const Matrix& matrix) {
  const bool apart = unit.lowering().plan.tensor_parallel > 1;
  return unit.parameter(matrix, apart ? PartialGradient::tensor : PartialGradient::none);
}

LinearPart down_projection(NetworkUnit& unit, OperatorKind part, const Matrix& weight,
                           const Matrix& bias) {
  LinearPart linear{.part = part,
                    .shape = gemm_shape(unit.lowering(), weight.rows, weight.columns),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {shared(unit, weight)};
  if (unit.model().biases) linear.biases = {shared(unit, bias)};
  return linear;
}

LinearPart up_projection(NetworkUnit& unit, OperatorKind part, const Matrix& weight,
                         const Matrix& bias) {
  LinearPart linear{.part = part,
                    .shape = gemm_shape(unit.lowering(), weight.rows, weight.columns),
                    .dtype = unit.lowering().training.precision.layer_gemm};
  linear.weights = {unit.parameter(weight, PartialGradient::none)};
  if (unit.model().biases) linear.biases = {unit.parameter(bias, PartialGradient::none)};
  return linear;
}

Operation latent_operation(const NetworkUnit& unit, OperationKind kind, OperatorKind part) {
  return {.kind = kind, .part = part, .dtype = unit.lowering().dtype};
}

struct LatentWidths {
  Segment queries, nope_keys, values;
};

LatentWidths widths_of(const NetworkUnit& unit) {
  const LatentAttention& latent = latent_of(unit);
  const std::int64_t heads = unit.model().attention_heads;
  const Lowering& lowering = unit.lowering();
  return {split(lowering, heads * (latent.nope_head_dim + latent.rope_head_dim)),
          split(lowering, heads * latent.nope_head_dim),
          split(lowering, heads * latent.value_head_dim)};
}

void make_query_path(NetworkUnit& unit, LatentPath& path) {
  const LatentAttention& latent = latent_of(unit);
  const LatentWidths widths = widths_of(unit);
  const std::int64_t hidden = unit.model().hidden_size;
  const std::int64_t rank = latent.query_rank;
  if (rank > 0) {
    path.query_down =
        down_projection(unit, OperatorKind::query_down,
                        {"query down weight", "query down weight gradient", rank, hidden},
                        {"query down bias", "query down bias gradient", rank});
    path.query_scale = shared(unit, {"query norm scale", "query norm scale gradient", rank});
    path.raw_query = unit.whole_activation("raw query latent", rank);
    path.query = unit.whole_activation("query latent", rank);
  }
  const Cut cut{CutAxis::rows, {widths.queries}};
  const std::int64_t rows = part_of(widths.queries);
  path.query_up =
      up_projection(unit, OperatorKind::query_up,
                    {"query weight", "query weight gradient", rows, rank > 0 ? rank : hidden, cut},
                    {"query bias", "query bias gradient", rows, 1, cut});
}

void make_kv_path(NetworkUnit& unit, LatentPath& path) {
  const LatentAttention& latent = latent_of(unit);
  const LatentWidths widths = widths_of(unit);
  const std::int64_t down = latent.kv_rank + latent.rope_head_dim;
  path.kv_down =
      down_projection(unit, OperatorKind::kv_down,
                      {"kv down weight", "kv down weight gradient", down, unit.model().hidden_size},
                      {"kv down bias", "kv down bias gradient", down});
  path.kv_scale = shared(unit, {"kv norm scale", "kv norm scale gradient", latent.kv_rank});
  path.raw_kv = unit.whole_activation("raw kv latent", latent.kv_rank);
  path.kv = unit.whole_activation("kv latent", latent.kv_rank);
  path.rope_keys = unit.whole_activation("shared keys", latent.rope_head_dim);
  path.nope_keys = unit.whole_activation("keys of latent", part_of(widths.nope_keys));
  const Cut cut{CutAxis::rows, {widths.nope_keys, widths.values}};
  const std::int64_t rows = part_of(widths.nope_keys) + part_of(widths.values);
  path.kv_up = up_projection(unit, OperatorKind::kv_up,
                             {"kv weight", "kv weight gradient", rows, latent.kv_rank, cut},
                             {"kv bias", "kv bias gradient", rows, 1, cut});
}

}  // namespace

void append_latent_heads(NetworkUnit& unit, AttentionHalf& half) {
  LatentPath& path = half.latent;
  const bool ranked = latent_of(unit).query_rank > 0;
  const Operand input =
      branch_input(unit, half.branch, ranked ? OperatorKind::query_down : OperatorKind::query_up);
  make_query_path(unit, path);
  make_kv_path(unit, path);
  if (ranked) append_linear(unit, path.query_down, input, {path.raw_query});
  append_linear(unit, path.kv_down, input, {path.raw_kv, path.rope_keys});
  Operation norm = latent_operation(unit, OperationKind::head_norm, OperatorKind::qk_norm);
  if (ranked) norm.operands = {reads(path.raw_query)};
  norm.operands.push_back(reads(path.raw_kv));
  if (ranked) norm.operands.push_back(reads(path.query_scale.weight));
  norm.operands.push_back(reads(path.kv_scale.weight));
  if (ranked) norm.operands.push_back(creates(path.query));
  norm.operands.push_back(creates(path.kv));
  unit.add(Phase::forward, norm);
  path.saved_kv = cast_input(unit, path.kv_up.part, path.kv);
  if (ranked) path.saved_query = cast_input(unit, path.query_up.part, path.query);
  append_linear(unit, path.query_up, ranked ? reads(path.saved_query) : input,
                {half.heads.queries});
  append_linear(unit, path.kv_up, reads(path.saved_kv), {path.nope_keys, half.heads.values});
  Operation rotary = latent_operation(unit, OperationKind::latent_rotary, OperatorKind::rotary);
  rotary.operands = {reads(path.nope_keys), reads(path.rope_keys), updates(half.heads.queries),
                     creates(half.heads.keys)};
  unit.add(Phase::forward, rotary);
}

void append_latent_heads_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                  const HeadBuffers& of) {
  const LatentPath& path = half.latent;
  const LatentAttention& latent = latent_of(unit);
  const bool ranked = latent.query_rank > 0;
  const int nope =
      unit.whole_activation("keys of latent gradient", part_of(widths_of(unit).nope_keys));
  const int rope = unit.whole_activation("shared keys gradient", latent.rope_head_dim);
  Operation rotary =
      latent_operation(unit, OperationKind::latent_rotary_gradient, OperatorKind::rotary);
  rotary.operands = {reads(of.keys), updates(of.queries), creates(nope), creates(rope)};
  unit.add(Phase::input_gradient, rotary);

  const int kv = unit.whole_activation("kv latent gradient", latent.kv_rank);
  const int raw_kv = unit.whole_activation("raw kv latent gradient", latent.kv_rank);
  const std::vector<Operand> up_gradients =
      cast_gradients(unit, path.kv_up.part, {reads(nope), reads(of.values)});
  append_input_gradient(unit, path.kv_up, up_gradients, creates(kv));
  append_weight_gradient(unit, path.kv_up, reads(path.saved_kv), up_gradients);
  const std::vector<Operand> query_gradients =
      cast_gradients(unit, path.query_up.part, {reads(of.queries)});
  int query = -1;
  int raw_query = -1;
  if (ranked) {
    query = unit.whole_activation("query latent gradient", latent.query_rank);
    raw_query = unit.whole_activation("raw query latent gradient", latent.query_rank);
    append_input_gradient(unit, path.query_up, query_gradients, creates(query));
    append_weight_gradient(unit, path.query_up, reads(path.saved_query), query_gradients);
  }
  Operation norm = latent_operation(unit, OperationKind::head_norm_gradient, OperatorKind::qk_norm);
  const auto both = [&](Operand of_query, Operand of_kv) {
    if (ranked) norm.operands.push_back(of_query);
    norm.operands.push_back(of_kv);
  };
  both(reads(path.raw_query), reads(path.raw_kv));
  both(reads(query), reads(kv));
  both(reads(path.query_scale.weight), reads(path.kv_scale.weight));
  both(creates(raw_query), creates(raw_kv));
  both(updates(path.query_scale.gradient), updates(path.kv_scale.gradient));
  unit.add(Phase::input_gradient, norm);

  const Operand input = branch_input_again(unit, half.branch);
  const int partial =
      unit.whole_activation(half.branch.names.input_gradient, unit.model().hidden_size);
  const LinearPart& first = ranked ? path.query_down : path.query_up;
  const std::vector<Operand> first_gradients =
      ranked ? cast_gradients(unit, first.part, {reads(raw_query)}) : query_gradients;
  const std::vector<Operand> kv_gradients =
      cast_gradients(unit, path.kv_down.part, {reads(raw_kv), reads(rope)});
  append_input_gradient(unit, first, first_gradients, creates(partial));
  append_input_gradient(unit, path.kv_down, kv_gradients, updates(partial));
  const int reduced =
      unit.reduced(Phase::input_gradient, partial, half.branch.names.input_gradient);
  append_weight_gradient(unit, first, input, first_gradients);
  append_weight_gradient(unit, path.kv_down, input, kv_gradients);
  finish_branch_gradient(unit, half.branch, reduced);
}

}  // namespace trainyard
