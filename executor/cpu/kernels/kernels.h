// What the compute operations of a program do to matrices on the host: the plain arithmetic of
// model/program/operation.h, once, for any scalar. The CPU backend runs it in float; the tests'
// interpreter in double (tests/model/program/interpreter).
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "executor/setting.h"
#include "model/program/view.h"

namespace trainyard {

template <typename S>
using Tensor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename S>
using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;
template <typename S>
using RowVector = Eigen::Matrix<S, 1, Eigen::Dynamic>;

// The operands of one operation on one rank, by access and in their order. Tokens, experts and
// counts are numbers like all others.
template <typename S>
struct Operands {
  std::vector<const Tensor<S>*> in;
  std::vector<Tensor<S>*> out;  // of the size that the buffer has
  std::vector<Tensor<S>*> in_place;
  std::vector<const ProgramBuffer*> in_buffers, in_place_buffers;
};

struct Where {
  const Setting& setting;
  RankCoordinates at;
  Tag tag;
  int shard = 0;          // of sharded states: which part is this rank's
  std::int64_t step = 0;  // of the run; its sequences come after those of the steps before
  double loss_scale = 1;  // what gradients are multiplied with until the update
};

template <typename S>
void compute(const Operation& operation, const Where& where, const Operands<S>& operands);

// Operations that are computed alike: on rows of tokens, in attention, on rows of experts, on sums,
// states and what changes its name, at both ends of the network (where all others count, too).
enum class KernelGroup : std::uint8_t { tokens, attention, experts, states, ends };
KernelGroup group_of(OperationKind kind);

// The families, each in its file.
template <typename S>
void compute_attention(const Operation& operation, const Where& where, const Operands<S>& operands);
// Of a ring that is not fused the scores of each block are kept beside the log-sum-exp.
bool keeps_block_scores(const Where& where);
template <typename S>
void compute_experts(const Operation& operation, const Where& where, const Operands<S>& operands);
// Marks the copies that their experts have no room for, in experts of tokens.
template <typename S>
void drop_copies(const Operation& operation, const Where& where, Tensor<S>& experts);
template <typename S>
void compute_ends(const Operation& operation, const Where& where, const Operands<S>& operands);
template <typename S>
void compute_update(const Operation& operation, const Where& where, const Operands<S>& operands);

// `numbers` as a GEMM in 8 or 4 bits reads them: rounded to the nearest that the format has times a
// scale, ties to even. A scale is the smallest power of two that leaves nothing beyond the format's
// largest number, of the whole matrix or of each block of a row, so that a number rounds alike on
// whichever rank it is, but where it is 2^15 times (e4m3) smaller than what it is scaled with. The
// scale of a block of nvfp4 is a number of e4m3, times such a power of two for the matrix. Without
// a format: `numbers`.
template <typename S>
Tensor<S> rounded(const Tensor<S>& numbers, const CastFormat& format);
// Matrices side by side, rounded; then this rank's rows of that, where they are kept.
template <typename S>
void cast(const Operation& operation, const Where& where, const Operands<S>& operands);
// A weight, as a GEMM that casts it reads it; in wider recipes the weight itself.
template <typename S>
class CastWeight {
 public:
  CastWeight(const Tensor<S>& weight, const CastFormat& format) : weight_(&weight) {
    if (!format.exists()) return;
    rounded_ = rounded(weight, format);
    weight_ = &rounded_;
  }
  CastWeight(const CastWeight&) = delete;
  CastWeight& operator=(const CastWeight&) = delete;
  const Tensor<S>& operator*() const { return *weight_; }
  const Tensor<S>* operator->() const { return weight_; }

 private:
  Tensor<S> rounded_;
  const Tensor<S>* weight_;
};

// Elements of a matrix that counts as one flat array.
struct FlatPart {
  Eigen::Index begin = 0, end = 0;
  bool has(Eigen::Index element) const { return element >= begin && element < end; }
};
FlatPart part_of(Eigen::Index size, int shards, int shard);

// Where row `row` of context rank `context` stands in its sequence of `length` tokens: rank i has
// the chunks i and 2c − 1 − i of 2c, so that causal masking leaves all ranks the same work; under
// Ulysses, or where the chunks do not come out even, one run.
std::int64_t dealt_position(const Plan& plan, std::int64_t length, int context, std::int64_t row);
// The inverse: which context rank has a position, in which of its rows of that sequence.
struct DealtRow {
  int context = 0;
  std::int64_t row = 0;
};
DealtRow dealt_row(const Plan& plan, std::int64_t length, std::int64_t position);

// Row `row` of a matrix with `rows` rows on this rank: which sequence of the run, which position in
// it. `rows` tells whether the matrix has the tokens of all tensor-parallel ranks.
struct TokenPlace {
  std::int64_t sequence = 0, position = 0;
};
TokenPlace token_place(const Where& where, Eigen::Index row, Eigen::Index rows);

}  // namespace trainyard
