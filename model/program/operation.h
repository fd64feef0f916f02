// The words of a program (docs/adr/0006-program.md): operations, what they read and write, where
// they run. Everything here is a template: sizes are those of one rank and one micro-batch; which
// layer and which micro-batch it is for, the view adds (model/program/view.h).
//
// An operation waits for three things and nothing else: the one before it on its stream, the last
// writer of every buffer that it reads or updates, and, where it updates, whoever used the buffer
// since. So the dependencies are those of the data and cannot disagree with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/cost/collective.h"
#include "model/plan/plan.h"
#include "model/units.h"
#include "model/workload/operators.h"
#include "model/workload/precision.h"

namespace trainyard {

// What an operation computes, with its operands in their order. [r×c] is a matrix of r rows
// (tokens, or output features of a weight) and c columns. "weights" are one or more matrices whose
// rows are stacked, then as many biases [r×1] or none; gradients of weights are in the same order.
enum class OperationKind : std::uint8_t {
  norm,                    // input, weight (scale, then shift) → output
  norm_gradient,           // input, output gradient, weight (scale) → input gradient; += weights'
  head_norm,               // RMSNorm of each head (of queries and keys, or of latent vectors):
                           // inputs, as many scales → outputs
  head_norm_gradient,      // inputs, output gradients, scales → input gradients; += scales'
  linear,                  // input, weights → outputs, whose columns are the stacked rows, or as
                           // many of the first ones as the outputs have columns
  linear_input_gradient,   // output gradients, weights → input gradient, or += it
  linear_weight_gradient,  // input, output gradients; += weights'
  cast,  // matrices, side by side → one, rounded to a narrower format; where only this rank's rows
         // are kept of it, these too
  rotary,                  // turns queries and keys in place
  rotary_gradient,         // turns their gradients back
  latent_rotary,           // keys of each head, keys that all heads share; turns the last elements
                           // of each query, and the shared keys → keys of each head, then shared
  latent_rotary_gradient,  // key gradients; turns the query gradients back → keys', shared keys'
  attention,           // queries, keys, values, sinks or none → output, log-sum-exp (unfused: the
                       // probabilities; of a ring's block: log-sum-exp, the block's scores)
  attention_gradient,  // queries, keys, values, output, log-sum-exp, output gradient, a block's
                       // scores or none, sinks or none → three; += sinks'
  attention_step,      // of a ring: queries, keys, values of another rank; updates output and
                       // statistics; → the block's scores, unfused
  attention_gradient_step,  // the same as its gradient → key and value gradients; += query's
  residual,                 // stream, branch, bias or none → stream
  residual_gradient,        // the sum of two gradients; += bias's, from the first
  dropout,                  // input → output, mask
  dropout_gradient,         // output gradient, mask → input gradient; += bias's, of a residual
  activation,           // SwiGLU (gate, then up, side by side) or GELU → output; with a gate for
                        // each row as second operand, times it
  activation_gradient,  // input, output gradient (, gates) → input gradient (, gates')
  route,  // router logits, correction bias or none → gates of a token's experts, experts;
          // what an expert has no room for is marked: −1 − expert
  route_gradient,  // router logits, experts, gradients of the copies' gates → logit gradient
  permute,         // experts, tokens → a copy for each expert of a token, in the order of the
                   // experts; with gates after the tokens also the copies' gates, rows by expert
  unpermute,       // experts, copies, what is added or none → the sum of each token's copies
  sort_rows,       // rows by source and expert, matrices → the same, those of one expert together
  unsort_rows,     // the way back
  grouped_linear,  // rows by expert, input, weights of each expert, biases or none → output, or as
                   // many of its first columns as the output has
  grouped_linear_input_gradient,   // rows by expert, output gradient, weights → input gradient
  grouped_linear_weight_gradient,  // rows by expert, input, output gradient; += weights'
  expert_bias,                     // rows by source and expert, gates, biases; rows += gate · bias
  expert_bias_gradient,            // the same, output gradient; += biases', the gates'
  embedding,                       // tokens, table → rows of this rank's part, zeros elsewhere
  embedding_gradient,              // tokens, output gradient; += table's
  positions,                       // input, table → input + its rows
  positions_gradient,              // output gradient; += table's
  cross_entropy_max,               // logits → largest of this rank
  cross_entropy_sum,   // logits, largest, labels → Σ exp(logit − largest), logit of the label
  cross_entropy_loss,  // largest, sum, label's logit; += loss, a mean over the global batch
  cross_entropy_gradient,  // largest, sum, labels, logits → their gradient
  sum_of_squares,          // gradients; += the squared norm, counting replicated elements once
  optimizer_step,          // gradients, squared norm; updates states and weights, clears gradients
  clear,                   // → zeros
  accumulate,              // numbers; += as many others, in the same order
  move,                    // buffers change their names: the columns of all inputs become those of
                           // the outputs; where these have fewer, the last ones; or the rows are
                           // copied to aligned places. In several shards this rank's part of them:
                           // its rows where the output has fewer, else its columns
  copy,        // between device and host, flat: inputs → as many outputs, or in place;
               // other operands are waited for. In several shards one of two is a whole and
               // cut at this rank's part; what a weight has beside it is not known then
  await,       // until its inputs are written, and those before it on its stream have ended; what
               // it creates is room that kernels behind it take, without numbers
  all_reduce,  // communication: model/program/program.h says who takes part
  reduce_scatter,
  all_gather,  // the rows of all members, one under the other; where the output has no more of
               // them than the input, their columns, side by side
  all_to_all,  // tokens of all heads ↔ heads of all tokens; contributions to one head add up
  dispatch,    // rows by expert, copies to the ranks of their experts → rows by source and expert
               // (read where they are known), rows received; gates go with them, not counted
  combine,     // rows by expert, rows by source and expert, rows received → copies, back home
  pass_on,     // to the next of the group, from the one before
  pass_back,   // the other way
  send,
  receive,
};
bool is_communication(OperationKind kind);
bool moves_bytes(OperationKind kind);  // between ranks, or to and from the host

// Operations of one stream run one after the other, in the order of the program. `pipeline` is a
// queue for each peer, direction and pass, so that a send never stands in the way of another.
enum class ProgramStream : std::uint8_t {
  compute,
  tensor_parallel,
  context_parallel,
  expert_parallel,
  pipeline,
  data_parallel,
  embedding,  // the sum over the two stages that hold one matrix of the vocabulary
  copy,       // from the device to the host
  fetch,      // and back
};
inline constexpr int kProgramStreams = 9;

// Which ranks a collective joins (model/program/rank_layout.h).
enum class Group : std::uint8_t {
  none,
  tensor,          // t
  kv_head,         // those of a tensor-parallel group that hold the same KV heads
  context,         // c
  dense_gradient,  // D·c: hold the same dense parameters
  dense_shard,     // those of them that share one copy of the sharded states
  dense_replica,   // those that hold the same shard
  expert,          // e: each holds other experts
  expert_tensor,   // e_t: each holds a part of the same experts
  expert_data,     // D_e: hold the same experts, and share one copy of their sharded states
  tied_embedding,  // first and last stage
  mirror,          // the two stages that hold copies of the same layers
  model,           // t·p: one copy of the network
  all,
};

// Elements that dropout drops, where the stack has it: of the residual branches, of the embedding
// and of unfused attention's probabilities. Whether it drops an element is a function of a seed and
// of the element's place in the whole network and batch.
inline constexpr double kDropoutRate = 0.1;

enum class Reduction : std::uint8_t { sum, max };

// Which of the three times of an operator (model/cost/compute.h) an operation takes.
enum class Phase : std::uint8_t { forward, input_gradient, weight_gradient, update };

enum class Access : std::uint8_t {
  read,
  create,  // a new buffer, written in full; waits for nobody
  update,  // in place
};

struct Operand {
  int buffer = 0;  // index in Program::buffers
  Access access = Access::read;
  bool frees = false;      // nobody uses it later; its memory returns when all its users have ended
  std::uint8_t ahead = 0;  // of a buffer between layers: 1 for the one after this layer
};

struct Operation {
  OperationKind kind{};
  ProgramStream stream = ProgramStream::compute;
  Phase phase = Phase::forward;
  bool recomputed = false;           // forward work repeated in the backward pass
  std::optional<OperatorKind> part;  // the operator of the network that it belongs to
  Dtype dtype = Dtype::bf16;         // of the arithmetic, or of a message's elements
  GemmShape gemm;                    // linear and its gradients: of the forward GEMM
  AttentionShape attention;
  CastFormat cast;  // of a cast; of a GEMM's weights, which it casts as it reads them
  Group group = Group::none;
  Reduction reduction = Reduction::sum;
  // 1: whole operands. More: gradients, states and weights as flat arrays, of each of which this
  // rank has its place's part in `group`, ⌈elements/shards⌉ long. A reduce-scatter leaves the sum
  // in that part, an all-gather spreads it, both in place; or a reduce-scatter makes a part of each
  // whole operand, an all-gather a whole of each part (ProgramBuffer::part_of).
  int shards = 1;
  int step = 0;      // of a ring: the keys are those of the rank so many places before this one
  int capacity = 0;  // of a route: tokens of this rank that an expert has room for; 0: any number
  double loss_weight = 1;  // of a cross-entropy's loss and gradient: what they count for in the sum
  Bytes message;  // as handbook §6 counts: all-reduce the tensor, gather and scatter the whole
  std::vector<Operand> operands;
};

// What a buffer is for. Activations are created and freed by operations; all others are there
// before the program and after it.
enum class BufferRole : std::uint8_t {
  activation,
  weight,
  gradient,   // main gradient, zero when the program starts and after the optimizer
  optimizer,  // master weights and moments
  data,       // tokens and labels
  scalar,     // loss, gradient norm: zero when the program starts
};

// How many instances of a buffer a stage has.
enum class Scope : std::uint8_t {
  stage,       // one
  layer,       // one a layer
  microbatch,  // one a micro-batch of the step
  activation,  // one a layer, and one more at the end of a chunk, for every micro-batch in flight
};

// How this rank's part lies in the whole tensor: `axis` is cut into segments that lie one after the
// other, each split evenly over `shards` ranks; `replicas` neighbouring ranks hold the same part.
enum class CutAxis : std::uint8_t { none, rows, columns };
struct Segment {
  std::int64_t whole = 0;
  int shards = 1;
  int replicas = 1;
};
struct Cut {
  CutAxis axis = CutAxis::none;
  std::vector<Segment> segments;
  int experts = 0;  // more: so many matrices, one under the other, of this rank's experts; the cut
                    // is that of each, over the ranks that share an expert
};
// Where row or column `local` of the part that tensor-parallel rank `tensor` holds is in the whole.
std::int64_t whole_index(const Cut& cut, int tensor, std::int64_t local);

struct ProgramBuffer {
  std::string_view name;
  BufferRole role = BufferRole::activation;
  Scope scope = Scope::activation;
  std::int64_t rows = 0, columns = 0;
  Dtype dtype = Dtype::bf16;
  double element_bytes = 2;
  Cut cut;              // weights and gradients
  double replicas = 1;  // ranks that add up their part of the gradient norm and hold each element
  int part_of = -1;  // of weights and gradients: this rank's part, one flat array, of that buffer
  Group among{};     // by the rank's place in this group
  bool gathered = false;  // a weight that is made for a pass, of parts or of what lies elsewhere
  OffloadTarget away{};   // where it lies, if not on the device
  bool routed = false;    // as many rows as the routing gives; `rows` is what the plan expects
  bool keeps_weights = false;  // of optimizer states: each weight in full, beside its moments
  int ahead = 0;               // of data: a row's token comes so many behind its position
  int prediction = 0;          // of weights and gradients that the head has for each token that it
                               // predicts: so many behind the next
  Bytes bytes() const {
    return Bytes(static_cast<double>(rows) * static_cast<double>(columns) * element_bytes);
  }
  Bytes bytes_on_device() const { return away == OffloadTarget::none ? bytes() : Bytes(0); }
};

// Of an optimizer step: so many of its first operands are gradients.
std::size_t updated_gradients(const Operation& optimizer_step);

std::string_view name_of(OperationKind kind);
std::string_view name_of(ProgramStream stream);
std::string_view name_of(Group group);
std::string_view name_of(OperatorKind kind);

// The collective that prices it; nothing for what is no collective.
std::optional<CollectiveOperation> collective_of(OperationKind kind);

}  // namespace trainyard
