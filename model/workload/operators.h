// The operators of one transformer layer on one rank, written once: their shapes under TP, SP, CP,
// EP and ETP, their FLOP, the memory traffic of those that are bound by it, and what each keeps for
// the backward pass. Cost, memory and FLOP counts read this list, and a program's operations are
// priced by it (model/program/price.h).
//
// Handbook §3, §4, §7. Figures are of one micro-batch (b sequences, n = b·s/c tokens), forward
// unless named otherwise. Communication is not in the list: it belongs to the plan
// (model/cost/messages/traffic.h).
#pragma once

#include <cstdint>

#include "model/inline_vector.h"
#include "model/units.h"
#include "model/workload/context_algorithm.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

enum class OperatorKind : std::uint8_t {
  attention_norm,
  qkv_projection,
  query_down,  // MLA down- and up-projections
  query_up,
  kv_down,
  kv_up,
  qk_norm,
  rotary,
  attention_core,
  ring_merge,  // partial outputs of ring attention's steps
  output_projection,
  attention_residual,
  mlp_norm,
  router,
  permutation,  // tokens into expert order and back
  expert_up,
  expert_activation,
  expert_down,
  mlp_up,  // gate and up together when gated
  mlp_activation,
  mlp_down,
  shared_up,
  shared_activation,
  shared_down,
  mlp_residual,
  gather_copy,     // of what a column-parallel GEMM's input was gathered to; backward of what its
                   // gradient is scattered from (Stack::copies_sharded_sequences)
  scatter_copy,    // of what a row-parallel GEMM's output is scattered from, and backward
  mtp_state_norm,  // of what an MTP layer takes in: the state before it and an embedding
  mtp_embedding_norm,
  mtp_concatenation,  // backward: the state's gradient is added to what the head has for it
  mtp_projection,
  embedding,
  embedding_copy,  // as scatter_copy
  final_norm,
  head_copy,  // as gather_copy
  output_head,
  cross_entropy,
};

enum class OperatorClass : std::uint8_t { gemm, grouped_gemm, attention, memory_bound };

// [m×k]·[k×n], `groups` of them side by side (grouped GEMM: m is the mean rows of a group).
struct GemmShape {
  double m = 0, n = 0, k = 0;
  double groups = 1;
};

struct AttentionShape {
  double batch = 0;                // sequences
  double heads = 0, kv_heads = 0;  // of this rank
  // Of this rank; keys: what one query sees at most (full convention).
  double queries = 0, keys = 0;
  double query_head_dim = 0, value_head_dim = 0;
  bool sliding = false;  // keys is the window, of which the first rows see a part
  double blocks = 1;     // that the keys come in, a kernel each (ring attention)
  // Ranks that the rows of a sequence are dealt over, zig-zag: it has as many times `queries`, and
  // what they see on average is what its rows do.
  double context_ranks = 1;
};

// A GEMM may carry traffic beside its own: casting its inputs under a low-precision recipe (its
// input forward, its output's gradient backward), the router's softmax. An unfused attention core
// carries its score matrix.
struct Operator {
  OperatorKind kind{};
  OperatorClass cls{};
  GemmShape gemm;
  AttentionShape attention;
  Flops forward;          // on this rank; attention counted in full, not causal
  double replicas = 1;    // ranks of the TP group that do this same work: model FLOP are Σ forward
                          // / replicas (fractional: replicated KV heads, padding, imbalance)
  Bytes forward_traffic;  // bytes read and written by a fused kernel
  Bytes backward_traffic;  // without the accumulation into main gradients
  Bytes saved;  // kept for backward: its inputs, where no operator before it in the list keeps
                // them. The projections also keep Q, K and V. Logits are not in it
                // (stack.saved_logit_bytes)
  double weights = 0;              // parameters of this rank that it reads, biases included
  bool after_last_saved = false;   // no tensor that backward needs comes after it: see
                                   // stack.recompute_stops_early
  bool in_attention_core = false;  // repeated, and `saved` dropped, by selective recomputation of
                                   // the core (Korthikanti 2022); never so under flash attention
};

// Whether it is a copy of a whole tensor beside a collective: nothing to fuse it with.
bool is_sequence_copy(OperatorKind kind);

// How one layer is cut; of a plan: model/plan/layer_shard.h.
struct LayerShard {
  int tensor = 1;
  bool sequence_parallel = false;
  int context = 1;
  ContextAlgorithm context_algorithm = ContextAlgorithm::ring;
  int expert = 1;
  int expert_tensor = 1;
  int micro_batch = 1;
  double capacity_factor = 0;  // 0: dropless
  double load_imbalance = 1;   // slowest rank's routed tokens over the mean
  friend bool operator==(const LayerShard&, const LayerShard&) = default;
};

// Tokens that one expert takes from the `tokens` of one rank before it drops the rest:
// ⌈tokens·k/E · factor⌉ (GShard, Lepikhin et al. 2021).
double expert_capacity(double tokens, int experts_per_token, int experts, double factor);

// Tokens that the busiest expert rank takes over the even share: `load_imbalance`, but no more than
// routing can do. One of e ranks may get all copies, and of a token each of its E/e experts one: e
// times the even share or E/k times. A rank with all experts has the even share.
double possible_load(const Transformer& model, const LayerShard& shard);
// The same where the capacity drops some of it. `tokens` are those of one rank.
double routed_load(const Transformer& model, const LayerShard& shard, double tokens);

inline constexpr std::size_t kMaxLayerOperators = 32;
using OperatorList = InlineVector<Operator, kMaxLayerOperators>;

OperatorList layer_operators(const Transformer& model, const Training& training,
                             const LayerShard& shard, LayerKind kind);

// Embedding lookup (first stage); final norm, output head and cross-entropy (last stage). For every
// MTP layer the last stage has both once more.
OperatorList embedding_operators(const Transformer& model, const Training& training,
                                 const LayerShard& shard);
OperatorList head_operators(const Transformer& model, const Training& training,
                            const LayerShard& shard);

// Vocabulary padded so that t divides it: for shapes and memory only.
std::int64_t padded_vocabulary(std::int64_t vocabulary, int tensor_parallel);

// Bytes of the layer's input, which is all that full recomputation keeps: 2·s·b·h, over t when the
// checkpoint is sharded (sequence parallelism).
Bytes layer_input_bytes(const Transformer& model, const Training& training,
                        const LayerShard& shard);

}  // namespace trainyard
