// The MLP half of a layer: a dense MLP, or router, routed experts and shared experts.

#include "model/workload/operator_context.h"

namespace trainyard {
namespace {

struct MlpKinds {
  OperatorKind up, activation, down;
};

// This rank's shard of `groups` MLPs of equal size, each of which takes `rows` tokens.
struct MlpShard {
  double rows = 0;  // of one group
  double groups = 1;
  double ffn = 0;          // of this rank
  double saved_input = 0;  // bytes
};

void append_mlp(const OperatorContext& context, const MlpKinds& kinds, const MlpShard& mlp,
                OperatorList& list) {
  const double up_width = context.model.gated_mlp ? 2 * mlp.ffn : mlp.ffn;
  const double rows = mlp.rows * mlp.groups;
  Operator up = layer_gemm(
      context, kinds.up, {.m = mlp.rows, .n = up_width, .k = context.hidden, .groups = mlp.groups},
      mlp.saved_input);
  Operator down = layer_gemm(
      context, kinds.down, {.m = mlp.rows, .n = context.hidden, .k = mlp.ffn, .groups = mlp.groups},
      context.gemm_input * rows * mlp.ffn);
  if (context.model.biases) {
    up.weights += up_width * mlp.groups;
    down.weights += context.hidden * mlp.groups;
  }
  const Stack& stack = context.training.stack;
  if (stack.fused_activation_casts) {
    up.backward_traffic = Bytes(0);
    down.forward_traffic = Bytes(0);
  }
  list.push_back(up);
  // Reads gate and up, writes the product; backward reads both again and the product's gradient and
  // writes their gradients.
  const double element = context.activation * rows;
  const double kept =
      stack.quantised_activation_input ? context.gemm_input * rows : context.activation * rows;
  list.push_back(memory_bound(kinds.activation, element * (up_width + mlp.ffn),
                              element * (2 * up_width + mlp.ffn), kept * up_width));
  list.push_back(down);
}

// A small GEMM in the precision of the head (Switch Transformer, Fedus et al. 2022, §2.4).
Operator router(const OperatorContext& context) {
  const Transformer& model = context.model;
  const double experts = model.experts;
  const double scores = context.local_tokens * experts;
  Operator op =
      gemm(OperatorKind::router, {.m = context.local_tokens, .n = experts, .k = context.hidden},
           context.local_tokens * context.hidden * context.activation + scores * 4);
  op.replicas = context.local_tokens * context.tensor / context.tokens;
  // Softmax over the experts, kept in fp32.
  op.forward_traffic = op.backward_traffic = Bytes(scores * (context.activation + 4));
  if (model.biases) op.weights += experts;
  if (model.router_correction_bias) op.weights += experts;
  return op;
}

// Each token is copied for each of its experts before the dispatch, and the copies are summed after
// the combine. With several local experts the received rows are sorted by expert and back. The gate
// weight is applied inside the experts' activation, so only indices and gate weights are kept.
Operator permutation(const OperatorContext& context, double local_experts, double received) {
  const double tokens = context.tokens / context.tensor;
  const double copies = tokens * context.model.experts_per_token;
  const bool exchanged = context.shard.expert > 1 || context.shard.expert_tensor > 1;
  const double sorted = exchanged && local_experts > 1 ? 4 * received : 0;
  // Rows are copied to aligned places before the GEMMs, and back from them (Megatron-Core's
  // Fp8Padding and Fp8Unpadding around TEGroupedMLP).
  const bool padded =
      context.training.stack.expert_padding && context.training.precision.casts_gemm_inputs();
  const double aligned = padded ? 4 * received : 0;
  const double traffic =
      context.activation * context.hidden * (2 * tokens + 2 * copies + sorted + aligned);
  return memory_bound(OperatorKind::permutation, traffic, traffic, copies * 8);
}

struct LayerRows {
  double mean = 0;     // tokens of one local expert under uniform routing
  double slowest = 0;  // the same on the busiest rank, after the capacity dropped some
};

LayerRows routed_rows(const OperatorContext& context) {
  const Transformer& model = context.model;
  const LayerShard& shard = context.shard;
  const double tokens = context.tokens / context.tensor;
  const double sources = static_cast<double>(shard.expert) * shard.expert_tensor;
  LayerRows rows;
  rows.mean = tokens * sources * model.experts_per_token / model.experts;
  rows.slowest = rows.mean * routed_load(model, shard, tokens);
  return rows;
}

// Bytes for each element of the experts' output if its bias is not added by the GEMM. Forward: the
// weighted bias is written (4) and added to the output (10), experts are concatenated (8) and cast
// (6). Backward: the cast (6), the output's gradient as bf16 (6) and concatenated (4), and a
// product (8) and its sum (4) for the bias and again for the gate weight.
constexpr double kBiasForward = 28, kBiasBackward = 40;

// Counted with the activation, because the traffic of a GEMM is its casts only.
void add_bias_apart(const OperatorContext& context, double rows, Operator& activation) {
  const double elements = rows * context.hidden;
  activation.forward_traffic += Bytes(elements * kBiasForward);
  activation.backward_traffic += Bytes(elements * kBiasBackward);
}

void append_routed_experts(const OperatorContext& context, OperatorList& list) {
  const Transformer& model = context.model;
  const LayerRows rows = routed_rows(context);
  const double experts = static_cast<double>(model.experts) / context.shard.expert;
  const double received = rows.slowest * experts;
  list.push_back(permutation(context, experts, received));
  const std::size_t first = list.size();
  append_mlp(context,
             {OperatorKind::expert_up, OperatorKind::expert_activation, OperatorKind::expert_down},
             {.rows = rows.slowest,
              .groups = experts,
              .ffn = static_cast<double>(model.expert_ffn_size) / context.shard.expert_tensor,
              .saved_input = context.gemm_input * received * context.hidden},
             list);
  for (std::size_t i = first; i < list.size(); ++i) {
    if (list[i].cls != OperatorClass::gemm) {
      const bool bias_apart = model.biases && context.training.stack.expert_bias_apart;
      if (bias_apart) add_bias_apart(context, received, list[i]);
      continue;
    }
    list[i].cls = OperatorClass::grouped_gemm;
    if (context.training.stack.fused_expert_casts) {
      list[i].forward_traffic = list[i].backward_traffic = Bytes(0);
    }
    // Model FLOP count the mean load, and also tokens that the capacity drops.
    list[i].replicas = rows.slowest / rows.mean;
  }
}

// One dense MLP over all tokens. The router keeps the common input, unless it is cast.
void append_shared_experts(const OperatorContext& context, OperatorList& list) {
  const bool cast = context.training.precision.casts_gemm_inputs();
  append_sequence_copy(context, OperatorKind::gather_copy, list);
  append_mlp(context,
             {OperatorKind::shared_up, OperatorKind::shared_activation, OperatorKind::shared_down},
             {.rows = context.tokens,
              .ffn = shared_expert_width(context.model) / context.tensor,
              .saved_input = cast || context.input_tokens > context.local_tokens
                                 ? context.gemm_input * context.input_tokens * context.hidden
                                 : 0.0},
             list);
  append_sequence_copy(context, OperatorKind::scatter_copy, list);
}

}  // namespace

void append_dense_mlp(const OperatorContext& context, OperatorList& list) {
  append_sequence_copy(context, OperatorKind::gather_copy, list);
  append_mlp(context, {OperatorKind::mlp_up, OperatorKind::mlp_activation, OperatorKind::mlp_down},
             {.rows = context.tokens,
              .ffn = static_cast<double>(context.model.ffn_size) / context.tensor,
              .saved_input = context.gemm_input * context.input_tokens * context.hidden},
             list);
  append_sequence_copy(context, OperatorKind::scatter_copy, list);
}

void append_experts(const OperatorContext& context, OperatorList& list) {
  list.push_back(router(context));
  if (context.model.shared_experts > 0) append_shared_experts(context, list);
  append_routed_experts(context, list);
}

}  // namespace trainyard
