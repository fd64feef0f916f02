// The parts of the network, each written once: forward, input gradient and weight gradient, with
// what they read, write and save. Internal to model/program.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "model/program/parts/casts.h"
#include "model/program/parts/recompute.h"
#include "model/program/parts/unit.h"

namespace trainyard {

// ---- Pieces that several parts have ---------------------------------------------------

struct NormPart {
  OperatorKind part{};
  Parameter scale, shift;  // shift: LayerNorm only
};
struct NormNames {
  std::string_view scale, scale_gradient, shift, shift_gradient;
};
// `prediction`: of the head (ProgramBuffer::prediction).
NormPart make_norm(NetworkUnit& unit, OperatorKind part, const NormNames& names,
                   int prediction = 0);
void append_norm(NetworkUnit& unit, const NormPart& norm, Operand input, int output);
void append_norm_gradient(NetworkUnit& unit, const NormPart& norm, Operand input,
                          int output_gradient, Operand input_gradient);

struct LinearPart {
  OperatorKind part{};
  std::vector<Parameter> weights, biases;
  GemmShape shape;  // forward
  Dtype dtype = Dtype::bf16;
};
void append_linear(NetworkUnit& unit, const LinearPart& linear, Operand input,
                   const std::vector<int>& outputs);
void append_input_gradient(NetworkUnit& unit, const LinearPart& linear,
                           const std::vector<Operand>& output_gradients, Operand input_gradient);
void append_weight_gradient(NetworkUnit& unit, const LinearPart& linear, Operand input,
                            const std::vector<Operand>& output_gradients);
GemmShape gemm_shape(const Lowering& lowering, std::int64_t outputs, std::int64_t inputs);

// ---- A residual branch: norm, column-parallel GEMM, something, row-parallel GEMM, sum -----

struct BranchNames {
  std::string_view input, gathered, partial, branch, mask, branch_gradient;
  std::string_view output_gradient, inner_gradient, regathered, input_gradient, norm_gradient;
};
struct Branch {
  BranchNames names;
  NormPart norm;
  LinearPart first, last;
  Parameter bias;  // of `last`, added after the reduction
  OperatorKind residual{};
  Operand stream, next;                    // as read
  Operand stream_gradient, next_gradient;  // of the same two
  int input = -1;                          // normed
  int saved_input = -1;                    // the same as the first GEMM keeps it, or gathered
  std::vector<int> firsts;                 // what the first GEMM writes
  int inner = -1;                          // what is made of that for the last GEMM
  int saved_inner = -1;                    // the same as it reads and keeps it
  int mask = -1;                           // of dropout; −1 without
};
// What backward reads of what a column-parallel GEMM reads.
void keep_input(const NetworkUnit& unit, const GemmInput& input, Branch& branch);
// Norm of the stream; returns what the first GEMM, of `part`, reads, and in backward the same
// again.
Operand branch_input(NetworkUnit& unit, Branch& branch, OperatorKind part);
Operand branch_input_again(NetworkUnit& unit, const Branch& branch);
void begin_branch(NetworkUnit& unit, Branch& branch);
void end_branch(NetworkUnit& unit, Branch& branch);
// The sum of the stream and what the branch adds to it.
void append_residual(NetworkUnit& unit, Branch& branch, int addition);
// The gradient of what was added to the stream, before dropout.
Operand branch_gradient(NetworkUnit& unit, const Branch& branch);
// Returns the gradient of `inner`.
int begin_branch_gradient(NetworkUnit& unit, const Branch& branch);
void end_branch_gradient(NetworkUnit& unit, const Branch& branch,
                         const std::vector<Operand>& gradients);
// From the gradient of the branch's input to that of the stream.
void finish_branch_gradient(NetworkUnit& unit, const Branch& branch, int input_gradient);

// ---- Units ------------------------------------------------------------------------------

// The stream as the layer reads it, and its gradient.
struct LayerInput {
  Operand stream, gradient;
};

// The stream between attention and MLP, and its gradient.
struct LayerMiddle {
  int stream = -1, gradient = -1;
};

struct HeadBuffers {
  int queries = -1, keys = -1, values = -1;
};

// From the input to queries, keys and values by way of latent vectors.
struct LatentPath {
  LinearPart query_down, query_up, kv_down, kv_up;  // query_down: where queries have a rank
  Parameter query_scale, kv_scale;
  int raw_query = -1, raw_kv = -1;  // before their norm
  int query = -1, kv = -1;
  int saved_query = -1, saved_kv = -1;  // the same as the up-projections read and keep them
  int nope_keys = -1, rope_keys = -1;
};

// Keys and values on their way round a ring take two places in turn: one is used while the other is
// filled.
using RingPlaces = std::array<HeadBuffers, 2>;

struct AttentionHalf {
  Branch branch;
  AttentionShape shape;
  Segment queries_cut, keys_cut, values_cut;  // of all heads
  HeadBuffers heads;                          // of this rank's tokens
  int raw_queries = -1, raw_keys = -1;        // before the norm of the heads; −1 without
  Parameter query_scale, key_scale;           // of the norm of the heads
  LatentPath latent;                          // where the model has it
  Parameter sinks;                            // a logit for each head that no key has; −1 without
  // What the core saves: its inputs, its output and the log-sum-exp of each row (unfused: the
  // probabilities). Where heads are dealt over the context ranks they are not those of `heads`.
  HeadBuffers core;
  int core_output = -1, statistics = -1;
  std::vector<int> block_scores;  // of a ring without a fused kernel, by step: before the softmax
  RingPlaces ring;                // of blocks on their way
};
AttentionHalf append_attention(NetworkUnit& unit, LayerKind kind, const LayerInput& input,
                               const LayerMiddle& middle);
void append_attention_gradient(NetworkUnit& unit, const AttentionHalf& half, Repeats repeats);

void append_latent_heads(NetworkUnit& unit, AttentionHalf& half);
// To the end of the branch.
void append_latent_heads_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                  const HeadBuffers& of);

// The core under each way of context parallelism; writes half.branch.inner.
void append_core(NetworkUnit& unit, AttentionHalf& half);
// Returns the gradients of half.heads. Where the core is repeated, the scores of the forward pass
// were not kept and are computed again, from what it read; where every second GEMM is, a ring
// begins with the rank's own block, else with the last that came, which was kept.
HeadBuffers append_core_gradient(NetworkUnit& unit, const AttentionHalf& half, int context_gradient,
                                 Repeats repeats);

void add_layer(NetworkUnit& unit, LayerKind kind, Repeats repeats);

// The matrix of the embedding, or of the head; one for both where they are tied on one stage, and
// one for the embedding and that of MTP layers: then `end` says whether every pass meets all of
// them.
Parameter vocabulary_table(NetworkUnit& unit, bool head, SharedEnd end);
void add_embedding(NetworkUnit& unit, Parameter table);
// The embeddings that MTP layers take in, for all of them.
void add_mtp_embedding(NetworkUnit& unit, Parameter table);
// Of the tokens so many further on, without positions: what it makes, and the gradient of that.
struct Lookup {
  int ahead = 0;
  Operand into, gradient;
};
void append_lookup(NetworkUnit& unit, Parameter table, const Lookup& lookup);
// Tokens of a micro-batch, `ahead` further on than the positions that they are for.
int token_buffer(NetworkUnit& unit, std::string_view name, int ahead);
void add_head(NetworkUnit& unit, Parameter table);

// ---- Between the passes -------------------------------------------------------------------

// Adds up the gradients of `parameters` over the ranks that share them; empty where nobody does.
std::vector<Operation> gradient_reduction(const Lowering& lowering,
                                          const std::vector<Parameter>& parameters);
// Until all of these have ended.
Operation await_reductions(const std::vector<Operation>& reductions);
// Those of experts, or the others.
std::vector<Parameter> parameters_of(const std::vector<Parameter>& parameters, bool experts);
// Under ZeRO stages 2 and 3: adds to the unit's backward pass what its gradients need; returns in
// which half the last of them are reduced, nothing where none are.
std::optional<Phase> reduce_every_pass(NetworkUnit& unit);
// Of a backward pass in two halves, the one that completes a gradient of the unit, or the sum of
// it; without halves the weight gradient's.
Phase completing_phase(const NetworkUnit& unit, const Parameter& parameter);
// Until they are reduced; empty where nothing runs beside the kernels.
std::vector<Operation> await_sums(const NetworkUnit& unit);
// The whole weights for one pass, where only parts are kept; empty where they are whole.
std::vector<Operation> weight_fetch(const NetworkUnit& unit, Phase phase);
// Spreads the updated weights of sharded states; empty where they are whole.
std::vector<Operation> weight_gather(const Lowering& lowering,
                                     const std::vector<Parameter>& parameters);
// Adds them up over the two stages that hold copies of the same layers; empty where none do.
std::vector<Operation> mirror_reduction(const Lowering& lowering,
                                        const std::vector<Parameter>& parameters);
// Of the two copies of a shared matrix, on the first and the last stage.
Operation shared_reduction(const Lowering& lowering, Parameter table);

// Squared norm of this rank's gradients; its sum over the copy of the network; the update.
std::vector<Operation> squared_norm(const Lowering& lowering,
                                    const std::vector<Parameter>& parameters, int norm);
std::vector<Operation> norm_reduction(const Lowering& lowering, int norm);
std::vector<Operation> optimizer_update(Lowering& lowering,
                                        const std::vector<Parameter>& parameters, int norm);
int norm_buffer(Lowering& lowering);

// A boundary between chunks on different stages: `buffer` is the stream or its gradient.
std::vector<Operation> boundary_send(const Lowering& lowering, int buffer);
std::vector<Operation> boundary_receive(Lowering& lowering, int buffer);
// Of a forward and a backward pass side by side: its gradient is there before the kernels of both,
// its stream leaves behind them (DualPipe's published implementation receives before a pair and
// sends after it).
std::vector<Operation> receive_ahead(Lowering& lowering);
std::vector<Operation> send_behind(Lowering& lowering);

// A boundary between two chunks of one stage: out of one and into the other, without a copy.
struct Turn {
  Operation out, in;
};
Turn turn(Lowering& lowering, int buffer, std::string_view name);

}  // namespace trainyard
