// The operators of one transformer layer on one rank, written once: their shapes under TP, SP, CP,
// EP and ETP, their FLOP, the memory traffic of the memory-bound ones, and what each keeps for the
// backward pass. Cost, memory and FLOP counts read this list, and a program's operations are priced
// by it (model/program/price.h).
//
// Handbook §3, §4, §7. Figures are of one micro-batch (b sequences, n = b·s/c tokens) and of the
// forward pass, unless their name says otherwise. Communication is not in the list: it depends on
// the plan (model/cost/messages/traffic.h).
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
  permutation,  // copies tokens into the order of their experts, and back
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
  gather_copy,     // of a column-parallel GEMM's gathered input; backward: of its input gradient
                   // before the reduce-scatter (Stack::copies_sharded_sequences)
  scatter_copy,    // of a row-parallel GEMM's output before the reduce-scatter; backward: of the
                   // gathered gradient
  mtp_state_norm,  // an MTP layer's two inputs: the state before it, and an embedding
  mtp_embedding_norm,
  mtp_concatenation,  // backward also adds the state's gradient to the head's gradient of it
  mtp_projection,
  embedding,
  embedding_copy,  // scatter_copy of the embedding
  final_norm,
  head_copy,  // gather_copy of the head
  output_head,
  cross_entropy,
};

enum class OperatorClass : std::uint8_t { gemm, grouped_gemm, attention, memory_bound };

// [m×k]·[k×n], `groups` of them side by side. In a grouped GEMM m is the mean number of rows.
struct GemmShape {
  double m = 0, n = 0, k = 0;
  double groups = 1;
};

struct AttentionShape {
  double batch = 0;                // sequences
  double heads = 0, kv_heads = 0;  // of this rank
  // Of one sequence: queries of this rank, and keys that one query sees at most (full convention).
  double queries = 0, keys = 0;
  double query_head_dim = 0, value_head_dim = 0;
  bool sliding = false;  // `keys` is the window; the first rows see only a part of it
  double blocks = 1;     // blocks that the keys come in, a kernel each (ring attention)
  // Ranks over which the rows of a sequence are dealt, zig-zag. The sequence has context_ranks ·
  // queries rows, and the rows of each rank see on average as many keys as all rows do.
  double context_ranks = 1;
};

// The traffic of a GEMM is only what comes beside its own operands: casts of its inputs under a
// low-precision recipe (forward of its input, backward of its output's gradient), the router's
// softmax. The traffic of an attention core is its score matrix, if it is unfused.
struct Operator {
  OperatorKind kind{};
  OperatorClass cls{};
  GemmShape gemm;
  AttentionShape attention;
  Flops forward;           // on this rank; attention counted in full, not causal
  double replicas = 1;     // ranks of the TP group that repeat this work: model FLOP are
                           // Σ forward / replicas (fractional: KV heads, padding, load imbalance)
  Bytes forward_traffic;   // bytes read and written by a fused kernel
  Bytes backward_traffic;  // without the accumulation into main gradients
  Bytes saved;  // kept for backward: its inputs, unless an earlier operator in the list keeps them.
                // The projections also keep Q, K and V. Logits are not counted here
                // (Stack::saved_logit_bytes)
  double weights = 0;              // parameters of this rank that it reads, biases included
  bool after_last_saved = false;   // backward needs no tensor that is made from here on
                                   // (Stack::recompute_stops_early)
  bool in_attention_core = false;  // selective recomputation of the core repeats it and drops
                                   // `saved` (Korthikanti 2022); false under flash attention
};

// Whether it is a copy of a whole tensor beside a collective, which cannot be fused with anything.
bool is_sequence_copy(OperatorKind kind);

// How one layer is cut over ranks; layer_shard() in model/plan/layer_shard.h makes it from a plan.
struct LayerShard {
  int tensor = 1;
  bool sequence_parallel = false;
  int context = 1;
  ContextAlgorithm context_algorithm = ContextAlgorithm::ring;
  int expert = 1;
  int expert_tensor = 1;
  int micro_batch = 1;
  double capacity_factor = 0;  // 0: dropless
  double load_imbalance = 1;   // tokens routed to the busiest expert rank over the mean
  friend bool operator==(const LayerShard&, const LayerShard&) = default;
};

// The tokens of one rank that an expert accepts before it drops the rest, where the rank has
// `tokens`: ⌈tokens·k/E · factor⌉ (GShard, Lepikhin et al. 2021).
double expert_capacity(double tokens, int experts_per_token, int experts, double factor);

// Tokens of the busiest expert rank over the even share: min(load_imbalance, e, E/k). Routing
// cannot do worse: a rank gets at most all copies (e times the even share), and of each token at
// most one copy for each of its E/e experts (E/k times). With e = 1 the share is even.
double possible_load(const Transformer& model, const LayerShard& shard);
// The same after the capacity factor dropped tokens. `tokens` are one rank's.
double routed_load(const Transformer& model, const LayerShard& shard, double tokens);

inline constexpr std::size_t kMaxLayerOperators = 32;
using OperatorList = InlineVector<Operator, kMaxLayerOperators>;

OperatorList layer_operators(const Transformer& model, const Training& training,
                             const LayerShard& shard, LayerKind kind);

// The embedding lookup (first stage); and final norm, output head and cross-entropy (last stage).
// For every MTP layer the last stage runs both lists once more.
OperatorList embedding_operators(const Transformer& model, const Training& training,
                                 const LayerShard& shard);
OperatorList head_operators(const Transformer& model, const Training& training,
                            const LayerShard& shard);

// The vocabulary padded to a multiple of t. For shapes and memory, not for parameter counts.
std::int64_t padded_vocabulary(std::int64_t vocabulary, int tensor_parallel);

// Bytes of a layer's input, which is all that full recomputation keeps: 2·s·b·h in 16 bits, divided
// by t if the checkpoint is sharded (sequence parallelism).
Bytes layer_input_bytes(const Transformer& model, const Training& training,
                        const LayerShard& shard);

}  // namespace trainyard
