// The vocabulary of a program (docs/adr/0006-program.md): operations, the buffers that they read
// and write, and the streams that they run on. Everything here is a template: sizes are those of
// one rank and one micro-batch, and the view (model/program/view.h) adds which layer and which
// micro-batch an instance is for.
//
// An operation waits for three things and nothing else: the operation before it on its stream, the
// last writer of every buffer that it reads or updates, and, for a buffer that it updates, all
// readers since that writer. So dependencies follow from the data and cannot disagree with it.
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

// What an operation computes, with its operands in their order: "a, b → c" reads a and b and
// creates c, "+= x" adds to x in place, "(, d)" is an operand that some networks or plans have, and
// x' is the gradient of x. A matrix [r×c] has r rows (tokens, or output features of a weight) and c
// columns. "weights" are one or more matrices stacked by rows, followed by one bias [r×1] for each
// or by none; weights' has the same order. "rows by expert" counts the rows of each expert; "rows
// by source and expert" does so for each rank that sent them.
enum class OperationKind : std::uint8_t {
  norm,                // input, scale (, shift) → output
  norm_gradient,       // input, output', scale → input'; += scale' (, shift')
  head_norm,           // RMSNorm of each head (of queries and keys, or of latent vectors):
                       // inputs, as many scales → as many outputs
  head_norm_gradient,  // inputs, outputs', scales → inputs'; += scales'
  linear,              // input, weights → outputs; their columns, side by side, are the stacked
                       // rows of the weights, or only the first ones if they have fewer columns
  linear_input_gradient,   // outputs', weights → input', or += input'
  linear_weight_gradient,  // input, outputs'; += weights'
  cast,             // matrices side by side → one matrix in a narrower format (, the rows of
                    // it that belong to this tensor-parallel rank)
  rotary,           // rotates queries and keys in place
  rotary_gradient,  // rotates their gradients back, in place
  latent_rotary,    // keys of each head without position, keys with position that all heads
                    // share → whole keys of each head; rotates the last elements of each
                    // query in place
  latent_rotary_gradient,  // keys' → the gradients of both inputs; rotates the query gradients back
  attention,  // queries, keys, values (, sinks) → output, log-sum-exp of each row (unfused, no
              // ring: the probabilities) (, in an unfused ring the scores of its block)
  attention_gradient,  // queries, keys, values, output, log-sum-exp, output' (, scores) (, sinks) →
                       // queries', keys', values'; += sinks'
  attention_step,  // a later step of a ring: queries, keys and values of another rank; updates
                   // output and log-sum-exp (→ scores)
  attention_gradient_step,  // its gradient → keys', values'; += queries'
  residual,                 // stream, branch (, bias) → stream (, mask of dropout)
  residual_gradient,        // two gradients → their sum; += bias', from the first
  dropout,                  // input → output, mask
  dropout_gradient,         // output', mask → input'; += bias' of a residual
  activation,  // SwiGLU (gate and up side by side) or GELU: input (, gates) → output, each
               // row times its gate
  activation_gradient,  // input, output' (, gates) → input' (, gates')
  route,           // router logits (, correction bias) → gates of each token's experts, their
                   // indices; a copy that an expert has no room for has the index −1 − expert
  route_gradient,  // router logits, indices of experts, gates' of the copies → logits'
  permute,         // indices of experts, tokens (, gates) → a copy of each token for each of its
                   // experts, sorted by expert (, the copies' gates, rows by expert)
  unpermute,       // indices of experts, copies (, matrices) → the sum of each token's copies and
                   // of the matrices
  sort_rows,    // rows by source and expert, matrices → the same, all rows of an expert together
  unsort_rows,  // the inverse of sort_rows
  grouped_linear,  // rows by expert, input, weights of each expert (, biases) → output, or only as
                   // many of its first columns as the output has
  grouped_linear_input_gradient,   // rows by expert, output', weights → input'
  grouped_linear_weight_gradient,  // rows by expert, input, output'; += weights'
  expert_bias,                     // rows by source and expert, gates, biases; rows += gate · bias
  expert_bias_gradient,            // the same operands, output'; += biases', gates'
  embedding,                       // tokens, table → rows that this rank's part has, else zeros
  embedding_gradient,              // tokens, output'; += table'
  positions,                       // input, table → input + the table's rows
  positions_gradient,              // output'; += table'
  cross_entropy_max,               // logits → the largest of this rank, for each token
  cross_entropy_sum,   // logits, largest, labels → Σ exp(logit − largest), logit of the label
  cross_entropy_loss,  // largest, sum, label's logit; += loss, a mean over the global batch
  cross_entropy_gradient,  // largest, sum, labels, logits → logits'
  sum_of_squares,          // gradients; += their squared norm; replicated elements count once
  optimizer_step,          // gradients, squared norm; updates states and weights, clears gradients
  clear,                   // → zeros
  accumulate,              // tensors; += as many others, in the same order
  move,   // no arithmetic: the columns of all inputs, side by side, become those of the outputs
          // (the last ones if these have fewer); or rows are copied to aligned places. With
          // several shards the output is this rank's part of the input: its rows if the
          // output has fewer rows, else its columns
  copy,   // between device and host, flat: inputs → as many outputs, or as many updated
          // buffers; other operands are only waited for. With several shards one side is a
          // whole tensor and the other this rank's part: the rest of a whole weight is then
          // not known
  await,  // ends when its inputs are written and all operations before it on its stream have
          // ended. What it creates is scratch memory for later kernels, without numbers
  all_reduce,  // communication: Operation::group says who takes part
  reduce_scatter,
  all_gather,  // the rows of all members, one under the other; if the output has no more rows than
               // the input, their columns side by side
  all_to_all,  // some tokens of all heads ↔ all tokens of some heads (Ulysses); what several ranks
               // send for the same head is added up
  dispatch,   // rows by expert, copies (, gates) → rows by source and expert, received rows
              // (, gates): sends each copy to its expert's rank. Known counts are read instead of
              // created. Gates are not counted in `message`
  combine,    // rows by expert, rows by source and expert, rows → copies on their tokens' ranks
  pass_on,    // ring: sends to the next member of the group, receives from the one before
  pass_back,  // ring: the other way round
  send,
  receive,
};
bool is_communication(OperationKind kind);
bool moves_bytes(OperationKind kind);  // between ranks, or to and from the host

// Operations of one stream run one after the other, in the order of the program. Only `pipeline`
// has several queues, one for each peer, direction and pass, so that no send blocks another.
enum class ProgramStream : std::uint8_t {
  compute,
  tensor_parallel,
  context_parallel,
  expert_parallel,
  pipeline,
  data_parallel,
  embedding,  // all-reduce between the two stages that hold a copy of the vocabulary matrix
  copy,       // from the device to the host
  fetch,      // from the host to the device
};
inline constexpr int kProgramStreams = 9;

// Which ranks a collective joins (model/program/rank_layout.h).
enum class Group : std::uint8_t {
  none,
  tensor,          // t
  kv_head,         // the ranks of a tensor-parallel group that hold the same KV heads
  context,         // c
  dense_gradient,  // D·c: hold the same dense parameters
  dense_shard,     // the ranks of dense_gradient that share one copy of the sharded states
  dense_replica,   // the ranks of dense_gradient that hold the same shard
  expert,          // e: each rank holds different experts
  expert_tensor,   // e_t: each rank holds a part of the same experts
  expert_data,     // D_e: hold the same experts and share one copy of their sharded states
  tied_embedding,  // first and last stage
  mirror,          // DualPipe: the two stages that hold copies of the same layers
  model,           // t·p: one copy of the network
  all,
};

// The share of elements that dropout drops, if the stack has dropout: in the residual branches, the
// embedding and the probabilities of unfused attention. Whether an element is dropped is a function
// of a seed and of its place in the whole network and batch, so it does not depend on the sharding.
inline constexpr double kDropoutRate = 0.1;

enum class Reduction : std::uint8_t { sum, max };

// Which of the three times of an operator (model/cost/compute.h) an operation has; `update`: none.
enum class Phase : std::uint8_t { forward, input_gradient, weight_gradient, update };

enum class Access : std::uint8_t {
  read,
  create,  // a new buffer, written in full; waits for nobody
  update,  // in place
};

// When the memory of a buffer that crosses a boundary of the pipeline returns, to a framework's
// engine: what an operation frees it may hold for longer, and what comes may come in memory that is
// always there. Programs run the same without.
enum class Hold : std::uint8_t {
  until_freed,
  until_backward,  // … and the micro-batch has had its last backward pass over the chunk
  to_the_end,      // of the step
  throughout,      // of a buffer that is created: before and after it
};

struct Operand {
  int buffer = 0;  // index in Program::buffers
  Access access = Access::read;
  bool frees = false;  // the last use: the memory returns when all users have ended
  // Of a buffer between layers: 0 at this layer's input, 1 at its output. Of a layer's own buffer:
  // that of the layer so many places after the one of the call; before it if below 0.
  int ahead = 0;
  Hold hold = Hold::until_freed;
};

struct Operation {
  OperationKind kind{};
  ProgramStream stream = ProgramStream::compute;
  Phase phase = Phase::forward;
  bool recomputed = false;           // forward work repeated in the backward pass
  std::optional<OperatorKind> part;  // the network's operator that it is a part of: its price
  Dtype dtype = Dtype::bf16;         // of the arithmetic, or of a message's elements
  GemmShape gemm;  // of a linear operation and its gradients: the shape of the forward GEMM
  AttentionShape attention;
  CastFormat cast;  // of a cast; of a GEMM: the format it casts its weights to as it reads them
  Group group = Group::none;
  Reduction reduction = Reduction::sum;
  // 1: operands are whole. More: gradients, states and weights are flat arrays cut over `group`,
  // and this rank's part of each is ⌈elements/shards⌉ long, at the rank's place. A reduce-scatter
  // or an all-gather then works in place, on that part of a whole array; or it creates parts from
  // whole operands, or whole operands from parts (ProgramBuffer::part_of).
  int shards = 1;
  int step = 0;      // of a ring: the keys come from the rank so many places before this one
  int capacity = 0;  // of a route: this rank's tokens that each expert has room for; 0: no limit
  double loss_weight = 1;  // of a cross-entropy: the weight of its loss in the total
  Bytes message;  // as handbook §6 counts it: all-reduce the tensor, gather and scatter the whole
  std::vector<Operand> operands;
};

// What a buffer is for. Activations are created and freed by operations; all other buffers exist
// before the program starts and after it ends.
enum class BufferRole : std::uint8_t {
  activation,
  weight,
  gradient,   // main gradient; zero when the program starts and after the optimizer step
  optimizer,  // master weights and moments
  data,       // tokens and labels
  scalar,     // loss, gradient norm: zero when the program starts
};

// How many instances of a buffer a stage has.
enum class Scope : std::uint8_t {
  stage,       // one
  layer,       // one a layer
  microbatch,  // one a micro-batch of the step
  activation,  // layers + 1 for each chunk (inputs, and the last output), for each slot in flight
};

// How this rank's part lies in the whole tensor: `axis` is cut into consecutive segments (queries,
// keys and values, say), each split evenly over `shards` ranks; `replicas` neighbouring ranks hold
// the same part.
enum class CutAxis : std::uint8_t { none, rows, columns };
struct Segment {
  std::int64_t whole = 0;
  int shards = 1;
  int replicas = 1;
};
struct Cut {
  CutAxis axis = CutAxis::none;
  std::vector<Segment> segments;
  int experts = 0;  // > 0: the matrices of this rank's experts, one under the other; the cut is
                    // that of each matrix, over the ranks that share an expert
};
// The index in the whole tensor of row or column `local` of tensor-parallel rank `tensor`.
std::int64_t whole_index(const Cut& cut, int tensor, std::int64_t local);

struct ProgramBuffer {
  std::string_view name;
  BufferRole role = BufferRole::activation;
  Scope scope = Scope::activation;
  std::int64_t rows = 0, columns = 0;
  Dtype dtype = Dtype::bf16;
  double element_bytes = 2;
  Cut cut;                // weights and gradients
  double replicas = 1;    // ranks that hold each element and add its square to the gradient norm
  int part_of = -1;       // the weight or gradient of which this is one rank's part, a flat array
  Group among{};          // the group over which `part_of` is cut, by the rank's place in it
  bool gathered = false;  // a weight made for one pass: gathered, or copied from the host
  OffloadTarget away{};   // where the buffer lies if it is not on the device
  bool routed = false;    // the routing decides the number of rows; `rows` is the expected one
  bool keeps_weights = false;  // of optimizer states: they hold the weights in full precision too
  int ahead = 0;       // of tokens and labels: row i holds the token this many places after token i
  int prediction = 0;  // of the head's weights and gradients: 0 is for the next token, k for the
                       // k-th token after it (MTP)
  double kept_bytes = 0;  // of an element, beside these, from its creation to the end of the step
  Bytes bytes() const {
    return Bytes(static_cast<double>(rows) * static_cast<double>(columns) * element_bytes);
  }
  Bytes bytes_on_device() const { return away == OffloadTarget::none ? bytes() : Bytes(0); }
};

// How many operands of an optimizer step are gradients; they come first.
std::size_t updated_gradients(const Operation& optimizer_step);

std::string_view name_of(OperationKind kind);
std::string_view name_of(ProgramStream stream);
std::string_view name_of(Group group);
std::string_view name_of(OperatorKind kind);

// The collective of the cost model that prices it; nothing if it is not a collective.
std::optional<CollectiveOperation> collective_of(OperationKind kind);

}  // namespace trainyard
