// What the files that write a part of the network share. A unit (one layer, the embedding, the
// head) collects its forward operations once and its backward operations once, in the order of an
// unsplit backward pass. Input-gradient and weight-gradient passes are selections from that list.
// Internal to model/program.
#pragma once

#include <string_view>
#include <vector>

#include "model/plan/plan.h"
#include "model/program/program.h"
#include "model/workload/training.h"
#include "model/workload/transformer.h"

namespace trainyard {

struct Lowering {
  const Transformer& model;
  const Training& training;
  const Plan& plan;
  Program program;
  std::int64_t tokens = 0;        // n = b·s/c
  std::int64_t local_tokens = 0;  // n/t under sequence parallelism
  Dtype dtype = Dtype::bf16;      // of activations and weights
  int hidden = -1;                // buffers between layers: the residual stream,
  int gradient = -1;              // and its gradient
  // The embeddings that MTP layers take in, at the position of each layer, and their gradients.
  int embedded = -1, embedded_gradient = -1;
  // Buffers that are written when a unit, a pass, or the last layer of a backward pass begins.
  // Copies from outside the device for a later unit, or for the next pass, wait for them. −1: no
  // copy does.
  int begun = -1, pass_begun = -1, layer_begun = -1;

  int add(const ProgramBuffer& buffer);
  // A new activation buffer [rows×columns].
  int activation(std::string_view name, std::int64_t rows, std::int64_t columns);
};

// A lowering whose program has only the buffers between layers.
Lowering start_lowering(const Transformer& model, const Training& training, const Plan& plan);

// The ranks over which a gradient must be added up before data parallelism, because they used the
// same weights for other tokens or other heads.
enum class PartialGradient : std::uint8_t { none, tensor, kv_head, expert_tensor };

// For a parameter that several units use in every pass (embedding, MTP layers, tied head): which of
// these a unit is. The whole weight or gradient is made where a pass meets the first of them and
// dropped after the last (a tied parameter is one parameter of FSDP's root).
enum class SharedEnd : std::uint8_t { none, front, middle, back };

struct Parameter {
  int weight = -1, gradient = -1;  // as the passes use them; −1: the model does not have it
  // What the rank holds: the same buffers, or its part of them (ZeRO 2 and 3). And where that is
  // stored between passes: the same, or outside the device; what is held then exists while a pass
  // needs it.
  int held_weight = -1, held_gradient = -1;
  int stored_weight = -1, stored_gradient = -1;
  PartialGradient partial = PartialGradient::none;
  bool expert = false;  // shared by the ranks that hold the same experts
  SharedEnd end = SharedEnd::none;
  bool exists() const { return weight >= 0; }
  bool keeps_weight_part() const { return held_weight != weight; }
  bool keeps_gradient_part() const { return held_gradient != gradient; }
  bool weight_away() const { return stored_weight != held_weight; }
  bool gradient_away() const { return stored_gradient != held_gradient; }
};

struct Matrix {
  std::string_view name, gradient_name;
  std::int64_t rows = 0, columns = 1;  // of this rank
  Cut cut;
  int prediction = 0;  // ProgramBuffer::prediction
};

Operand reads(int buffer, int ahead = 0);
Operand creates(int buffer, int ahead = 0);
Operand updates(int buffer, int ahead = 0);
Operand with_access(Operand operand, Access access);

// `whole` split over the tensor-parallel ranks; KV heads are replicated if they are fewer.
Segment split(const Lowering& lowering, std::int64_t whole);
Segment split_kv_heads(const Lowering& lowering, std::int64_t whole);
inline std::int64_t part_of(const Segment& segment) { return segment.whole / segment.shards; }

// The ranks that hold the same parameters: all of them; those that share one copy of the sharded
// states; and those that hold the same shard.
struct Sharing {
  Group all{}, shard{}, replica{};
  int ranks = 1, shards = 1;
};
Sharing sharing_of(const Lowering& lowering, bool experts);
// Whether gathers cast the weights of the passes from the master weights, so that no 16-bit copy is
// kept (FSDP).
bool casts_master_weights(const Lowering& lowering);

// Whether a buffer is this rank's part of another.
bool is_part(const Lowering& lowering, int buffer);

// Where the weights of the passes lie: with the optimizer if they are cast from master weights.
OffloadTarget weights_target(const Lowering& lowering);

class NetworkUnit {
 public:
  NetworkUnit(Lowering& lowering, Scope of_parameters)
      : lowering_(lowering), of_parameters_(of_parameters) {}

  Lowering& lowering() { return lowering_; }
  const Lowering& lowering() const { return lowering_; }
  const Transformer& model() const { return lowering_.model; }

  // New activations with a row for each of this rank's tokens, or each token of its TP group.
  int local_activation(std::string_view name);
  int whole_activation(std::string_view name, std::int64_t columns);
  // A new fp32 buffer for sums, counts and indices.
  int numbers(std::string_view name, std::int64_t rows, std::int64_t columns);
  // One byte for each element of this rank's tokens.
  int dropout_mask(std::string_view name);
  bool drops() const { return lowering_.training.stack.dropout; }

  Parameter parameter(const Matrix& matrix, PartialGradient partial,
                      SharedEnd end = SharedEnd::none);
  // A parameter of another unit. If only parts are kept, this unit gets whole copies of its own,
  // unless every pass meets all units that use the parameter.
  Parameter borrowed(Parameter parameter, SharedEnd end = SharedEnd::back);
  // Replicated on all tensor-parallel ranks; its gradient is partial if each has its own tokens.
  Parameter replicated(const Matrix& matrix);

  void add(Phase phase, Operation operation);
  // Recomputation in the backward pass: of one operation, or of all forward operations so far.
  // Nobody needs their last output a second time.
  void repeat(Operation operation);
  void repeat_forward();
  // Recomputes every second GEMM of a layer and all memory-bound operations. Requires: the forward
  // pass is complete.
  void repeat_every_second_matmul();
  // Whether input and weight gradients are passes of their own.
  bool splits_backward() const;
  void surround_backward(const std::vector<Operation>& before, const std::vector<Operation>& after);

  // The collectives around column- and row-parallel GEMMs. gathered: with sequence parallelism an
  // all-gather into a new buffer of that name, else the buffer itself. reduced: a reduce-scatter
  // into a new buffer, else an all-reduce in place. If the stack copies sharded sequences, the
  // copies are added too, except for the second gather of a saved input for the weight gradient:
  // PyTorch keeps what was gathered and has none. Under set_plain_collectives(true) there are no
  // copies at all.
  Operand gathered(Phase phase, Operand local, std::string_view name);
  int reduced(Phase phase, int partial, std::string_view name);
  // The same with a buffer for the scattered sum; returns where the sum is.
  Operand reduced(Phase phase, Operand partial, Operand scattered);
  // An all-gather of the columns of all tensor-parallel ranks into a new buffer. Requires: several
  // ranks.
  int gathered_columns(Phase phase, int columns, std::string_view name);
  // A small all-reduce among the tensor-parallel ranks; nothing for one rank.
  void all_reduced(Phase phase, int buffer, Reduction reduction);

  void set_plain_collectives(bool plain) { plain_ = plain; }

  const std::vector<Operation>& forward() const { return forward_; }
  const std::vector<Operation>& backward() const { return backward_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // parameters(), and the borrowed ones.
  const std::vector<Parameter>& used() const { return used_; }

 private:
  int keep_part(int whole, const Sharing& sharing);
  void keep_parts(Parameter& parameter);
  int store(int held, OffloadTarget target);
  Operation tensor_collective(OperationKind kind, Phase phase, int whole) const;
  bool copies_sequences(Phase phase) const;
  // The copy beside a collective of a column-parallel or a row-parallel GEMM.
  int sequence_copy(Phase phase, int whole, bool column_parallel, std::string_view name);

  Lowering& lowering_;
  Scope of_parameters_;
  bool plain_ = false;
  std::vector<Operation> forward_, backward_;
  std::vector<Parameter> parameters_, used_;
};

}  // namespace trainyard
