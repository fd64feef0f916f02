// The parts of the network, each written once: the operations of its forward, input-gradient and
// weight-gradient work, with what they read, write and save. Internal to model/program.
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
// `prediction`: of the head's norms (ProgramBuffer::prediction).
NormPart make_norm(NetworkUnit& unit, OperatorKind part, const NormNames& names,
                   int prediction = 0);
void append_norm(NetworkUnit& unit, const NormPart& norm, Operand input, int output);
void append_norm_gradient(NetworkUnit& unit, const NormPart& norm, Operand input,
                          int output_gradient, Operand input_gradient);

struct LinearPart {
  OperatorKind part{};
  std::vector<Parameter> weights, biases;
  GemmShape shape;  // of the forward GEMM
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
  Operand stream, next;                    // the residual stream before and after the branch
  Operand stream_gradient, next_gradient;  // the gradients of these two
  int input = -1;                          // the stream after the norm
  int saved_input = -1;                    // the same as it is kept for the first GEMM's gradient
  std::vector<int> firsts;                 // outputs of the first GEMM
  int inner = -1;                          // what the last GEMM's input is made of
  int saved_inner = -1;                    // the same as the last GEMM reads and keeps it
  int mask = -1;                           // of dropout; −1: none
};
// Notes what is kept of a column-parallel GEMM's input for its weight gradient.
void keep_input(const NetworkUnit& unit, const GemmInput& input, Branch& branch);
// branch_input appends the norm of the stream and returns what the first GEMM, of `part`, reads.
// branch_input_again returns the same in the backward pass.
Operand branch_input(NetworkUnit& unit, Branch& branch, OperatorKind part);
Operand branch_input_again(NetworkUnit& unit, const Branch& branch);
void begin_branch(NetworkUnit& unit, Branch& branch);
void end_branch(NetworkUnit& unit, Branch& branch);
// Appends the sum of the stream and what the branch adds to it.
void append_residual(NetworkUnit& unit, Branch& branch, int addition);
// Returns the gradient of what the branch added to the stream, before dropout.
Operand branch_gradient(NetworkUnit& unit, const Branch& branch);
// Returns the gradient of `inner`.
int begin_branch_gradient(NetworkUnit& unit, const Branch& branch);
void end_branch_gradient(NetworkUnit& unit, const Branch& branch,
                         const std::vector<Operand>& gradients);
// Leads from the gradient of the branch's input, through the norm, to the gradient of the stream.
void finish_branch_gradient(NetworkUnit& unit, const Branch& branch, int input_gradient);

// ---- Units ------------------------------------------------------------------------------

// The residual stream as the layer reads it, and its gradient.
struct LayerInput {
  Operand stream, gradient;
};

// The residual stream between attention and MLP, and its gradient.
struct LayerMiddle {
  int stream = -1, gradient = -1;
};

struct HeadBuffers {
  int queries = -1, keys = -1, values = -1;
};

// Latent attention: the way from the input through latent vectors to queries, keys and values.
struct LatentPath {
  LinearPart query_down, query_up, kv_down, kv_up;  // query_down: if queries have a rank
  Parameter query_scale, kv_scale;
  int raw_query = -1, raw_kv = -1;  // before their norm
  int query = -1, kv = -1;
  int saved_query = -1, saved_kv = -1;  // latent vectors as the up-projections read and keep them
  int nope_keys = -1, rope_keys = -1;
};

// Two places for keys and values that go round a ring: one is used while the other is filled.
using RingPlaces = std::array<HeadBuffers, 2>;

struct AttentionHalf {
  Branch branch;
  AttentionShape shape;
  Segment queries_cut, keys_cut, values_cut;  // how the columns of all heads are cut
  HeadBuffers heads;                          // of this rank's tokens
  int raw_queries = -1, raw_keys = -1;        // before the norm of the heads; −1: no such norm
  Parameter query_scale, key_scale;           // of the norm of the heads
  LatentPath latent;                          // of latent attention
  Parameter sinks;                            // one logit for each head, without a key; −1: none
  // What the core saves: its inputs, its output and the log-sum-exp of each row (unfused: the
  // probabilities). Under Ulysses its inputs are not `heads` but all tokens of some heads.
  HeadBuffers core;
  int core_output = -1, statistics = -1;
  std::vector<int> block_scores;  // [step] of an unfused ring: scores before the softmax
  RingPlaces ring;                // of blocks on their way round
};
AttentionHalf append_attention(NetworkUnit& unit, LayerKind kind, const LayerInput& input,
                               const LayerMiddle& middle);
void append_attention_gradient(NetworkUnit& unit, const AttentionHalf& half, Repeats repeats);

void append_latent_heads(NetworkUnit& unit, AttentionHalf& half);
// Appends all of the branch that is left; `of` are the gradients of what the core reads.
void append_latent_heads_gradient(NetworkUnit& unit, const AttentionHalf& half,
                                  const HeadBuffers& of);

// Appends the core under the algorithm of context parallelism; writes half.branch.inner.
void append_core(NetworkUnit& unit, AttentionHalf& half);
// Returns the gradients of half.heads. If the core is recomputed, the scores of the forward pass
// were not kept and are computed again from its inputs. A ring runs backwards from the last block
// that came, which was kept; under every_second_matmul it runs forwards again from the rank's own
// block.
HeadBuffers append_core_gradient(NetworkUnit& unit, const AttentionHalf& half, int context_gradient,
                                 Repeats repeats);

void add_layer(NetworkUnit& unit, LayerKind kind, Repeats repeats);

// The vocabulary matrix of the embedding or of the head. Units on one stage share one parameter:
// the embedding and a tied head, the embedding and the MTP layers. `end` then says whether every
// pass meets all of them.
Parameter vocabulary_table(NetworkUnit& unit, bool head, SharedEnd end);
void add_embedding(NetworkUnit& unit, Parameter table);
// The embeddings of all MTP layers.
void add_mtp_embedding(NetworkUnit& unit, Parameter table);
// A lookup without positions: of the tokens `ahead` places further on, its output and the gradient.
struct Lookup {
  int ahead = 0;
  Operand into, gradient;
};
void append_lookup(NetworkUnit& unit, Parameter table, const Lookup& lookup);
// The buffer of a micro-batch's tokens, each row `ahead` tokens after its own position.
int token_buffer(NetworkUnit& unit, std::string_view name, int ahead);
void add_head(NetworkUnit& unit, Parameter table);

// ---- Between the passes -------------------------------------------------------------------

// Adds up the gradients of `parameters` over the ranks that share them; empty if no ranks do.
std::vector<Operation> gradient_reduction(const Lowering& lowering,
                                          const std::vector<Parameter>& parameters);
// A wait until all of these reductions have ended.
Operation await_reductions(const std::vector<Operation>& reductions);
// The experts' parameters, or all others.
std::vector<Parameter> parameters_of(const std::vector<Parameter>& parameters, bool experts);
// Under ZeRO stages 2 and 3: adds the reductions of a unit's gradients to its backward pass.
// Returns the half in which the last gradient is reduced; nothing if none is.
std::optional<Phase> reduce_every_pass(NetworkUnit& unit);
// The half of a split backward pass that completes a gradient of the unit, or the reduced sum of
// it; the weight-gradient half if the pass is not split.
Phase completing_phase(const NetworkUnit& unit, const Parameter& parameter);
// All-gathers of the weights for one pass; empty if the rank keeps whole weights.
std::vector<Operation> weight_fetch(const NetworkUnit& unit, Phase phase);
// All-gathers of updated weights after a sharded update; empty if states are not sharded.
std::vector<Operation> weight_gather(const Lowering& lowering,
                                     const std::vector<Parameter>& parameters);
// DualPipe: adds gradients up over the two stages that hold copies of the same layers; else empty.
std::vector<Operation> mirror_reduction(const Lowering& lowering,
                                        const std::vector<Parameter>& parameters);
// Adds up the gradients of the two copies of a shared matrix, on the first and the last stage.
Operation shared_reduction(const Lowering& lowering, Parameter table);

// The squared norm of this rank's gradients; its sum over one copy of the network; the update.
std::vector<Operation> squared_norm(const Lowering& lowering,
                                    const std::vector<Parameter>& parameters, int norm);
std::vector<Operation> norm_reduction(const Lowering& lowering, int norm);
std::vector<Operation> optimizer_update(Lowering& lowering,
                                        const std::vector<Parameter>& parameters, int norm);
int norm_buffer(Lowering& lowering);

// The boundary between chunks on different stages: `buffer` is the stream or its gradient.
std::vector<Operation> boundary_send(const Lowering& lowering, int buffer);
std::vector<Operation> boundary_receive(Lowering& lowering, int buffer);
// For a forward and a backward pass that run side by side: the gradient is received before the
// kernels of both, the stream is sent after them (as in DualPipe's published implementation).
std::vector<Operation> receive_ahead(Lowering& lowering);
std::vector<Operation> send_behind(Lowering& lowering);

// The boundary between two chunks of one stage: the buffer is renamed, not copied.
struct Turn {
  Operation out, in;
};
Turn turn(Lowering& lowering, int buffer, std::string_view name);

}  // namespace trainyard
