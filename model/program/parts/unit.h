// What the files that write a part of the network share: a unit (one layer, the embedding, the
// head) collects its forward operations once and its backward operations once, the latter in the
// order of a backward pass that is not split; input-gradient and weight-gradient passes are
// selections from that list. Internal to model/program.
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
  int hidden = -1;                // buffers between layers: the stream, and its gradient
  int gradient = -1;
  // What MTP layers take in beside it, at the position of each; and its gradient.
  int embedded = -1, embedded_gradient = -1;
  // Marks that the beginning of a unit, or of a pass, writes: copies that come from outside the
  // device for a later unit, or for the next pass, wait for them. −1: no copy does.
  int begun = -1, pass_begun = -1;

  int add(const ProgramBuffer& buffer);
  // [rows×columns] of activations.
  int activation(std::string_view name, std::int64_t rows, std::int64_t columns);
};

// With the two buffers between layers.
Lowering start_lowering(const Transformer& model, const Training& training, const Plan& plan);

// Over which ranks a gradient must be added up before data parallelism: those that saw other tokens
// or other heads with the same weights.
enum class PartialGradient : std::uint8_t { none, tensor, kv_head, expert_tensor };

// Of a parameter that several units use in every pass, embedding and head or MTP layers: which of
// them it is. Whole weights and gradients are made where a pass meets the first of them, and
// forgotten behind the last (a tied parameter is one parameter of FSDP's root).
enum class SharedEnd : std::uint8_t { none, front, middle, back };

struct Parameter {
  int weight = -1, gradient = -1;  // as the passes use them; −1: the model does not have it
  // What the rank keeps from step to step: the same, or its part of them; and where: the same, or
  // outside the device, and then what is held is there while a pass needs it.
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

// `whole` split over the tensor-parallel ranks; KV heads replicate where there are too few.
Segment split(const Lowering& lowering, std::int64_t whole);
Segment split_kv_heads(const Lowering& lowering, std::int64_t whole);
inline std::int64_t part_of(const Segment& segment) { return segment.whole / segment.shards; }

// The ranks that hold the same parameters: all of them, those that share one copy of sharded
// states, those that hold the same shard.
struct Sharing {
  Group all{}, shard{}, replica{};
  int ranks = 1, shards = 1;
};
Sharing sharing_of(const Lowering& lowering, bool experts);
// Whether the passes' weights are cast from the master weights as they are gathered, without a copy
// in between (FSDP).
bool casts_master_weights(const Lowering& lowering);

// Whether a buffer is this rank's part of another.
bool is_part(const Lowering& lowering, int buffer);

// Where the weights of the passes lie; master weights that they are cast from, with the optimizer.
OffloadTarget weights_target(const Lowering& lowering);

class NetworkUnit {
 public:
  NetworkUnit(Lowering& lowering, Scope of_parameters)
      : lowering_(lowering), of_parameters_(of_parameters) {}

  Lowering& lowering() { return lowering_; }
  const Lowering& lowering() const { return lowering_; }
  const Transformer& model() const { return lowering_.model; }

  // A row for each of this rank's tokens, or for each token of its tensor-parallel group.
  int local_activation(std::string_view name);
  int whole_activation(std::string_view name, std::int64_t columns);
  // fp32; of tokens, sums and counts.
  int numbers(std::string_view name, std::int64_t rows, std::int64_t columns);
  // One byte for each number of this rank's tokens.
  int dropout_mask(std::string_view name);
  bool drops() const { return lowering_.training.stack.dropout; }

  Parameter parameter(const Matrix& matrix, PartialGradient partial,
                      SharedEnd end = SharedEnd::none);
  // Another unit's; where only parts are kept, with whole copies of its own unless every pass meets
  // all units that have it.
  Parameter borrowed(Parameter parameter, SharedEnd end = SharedEnd::back);
  // Held by every tensor-parallel rank; partial where each sees its own tokens only.
  Parameter replicated(const Matrix& matrix);

  void add(Phase phase, Operation operation);
  // Forward work again, in the backward pass: one operation, or all so far, whose output nobody
  // needs a second time.
  void repeat(Operation operation);
  void repeat_forward();
  // Every second GEMM of a layer, and what is bound by memory. Requires: the forward pass is
  // complete.
  void repeat_every_second_matmul();
  // Whether input and weight gradients are passes of their own.
  bool splits_backward() const;
  void surround_backward(const std::vector<Operation>& before, const std::vector<Operation>& after);

  // Around column- and row-parallel GEMMs. Before: with sequence parallelism an all-gather into a
  // new buffer of that name, else the buffer itself. After: a reduce-scatter into a new buffer,
  // else an all-reduce in place. Where the stack copies what is gathered and what is scattered, the
  // copies are here too; but for the second gather of a saved input, for the weight gradient:
  // PyTorch keeps what was gathered and has none. `plain`: without copies whatever the stack does.
  Operand gathered(Phase phase, Operand local, std::string_view name);
  int reduced(Phase phase, int partial, std::string_view name);
  // The same with a place for the scattered sum; returns where the sum is.
  Operand reduced(Phase phase, Operand partial, Operand scattered);
  // The columns of all tensor-parallel ranks side by side, in a new buffer. Requires: several
  // ranks.
  int gathered_columns(Phase phase, int columns, std::string_view name);
  // A small all-reduce among the tensor-parallel ranks; nothing for one rank.
  void all_reduced(Phase phase, int buffer, Reduction reduction);

  void set_plain_collectives(bool plain) { plain_ = plain; }

  const std::vector<Operation>& forward() const { return forward_; }
  const std::vector<Operation>& backward() const { return backward_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // And what is borrowed.
  const std::vector<Parameter>& used() const { return used_; }

 private:
  int keep_part(int whole, const Sharing& sharing);
  void keep_parts(Parameter& parameter);
  int store(int held, OffloadTarget target);
  Operation tensor_collective(OperationKind kind, Phase phase, int whole) const;
  bool copies_sequences(Phase phase) const;
  // Beside a collective of a column-parallel GEMM, or of a row-parallel one.
  int sequence_copy(Phase phase, int whole, bool column_parallel, std::string_view name);

  Lowering& lowering_;
  Scope of_parameters_;
  bool plain_ = false;
  std::vector<Operation> forward_, backward_;
  std::vector<Parameter> parameters_, used_;
};

}  // namespace trainyard
