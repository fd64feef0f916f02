// What the compute operations of a program do to matrices on the host: the plain arithmetic of
// model/program/operation.h, written once for any scalar. The CPU backend runs it in float, the
// tests' interpreter in double (tests/model/program/interpreter).
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

// The operands of one operation on one rank, by access, each list in their order. Tokens, experts
// and counts are stored as numbers like all others.
template <typename S>
struct Operands {
  std::vector<const Tensor<S>*> in;
  std::vector<Tensor<S>*> out;  // already of the buffer's size
  std::vector<Tensor<S>*> in_place;
  std::vector<const ProgramBuffer*> in_buffers, in_place_buffers;
};

// Where in the step and in the network an operation is computed.
struct Where {
  const Setting& setting;
  RankCoordinates at;
  Tag tag;
  int shard = 0;          // which part of sharded states this rank has
  std::int64_t step = 0;  // number of the batch; for an update, steps taken so far
  double loss_scale = 1;  // factor that gradients carry until the update
};

template <typename S>
void compute(const Operation& operation, const Where& where, const Operands<S>& operands);

// Families of operations: on rows of tokens; attention; on rows of experts; sums, states and moves
// between buffers; embedding and cross-entropy at both ends of the network. Kinds that compute
// nothing count as `ends`.
enum class KernelGroup : std::uint8_t { tokens, attention, experts, states, ends };
KernelGroup group_of(OperationKind kind);

// Families of operations, each in its own file.
template <typename S>
void compute_attention(const Operation& operation, const Where& where, const Operands<S>& operands);
// Whether attention keeps the scores of each block beside the log-sum-exp: in a ring without a
// fused kernel.
bool keeps_block_scores(const Where& where);
template <typename S>
void compute_experts(const Operation& operation, const Where& where, const Operands<S>& operands);
// Marks in `experts`, the experts chosen for each token, the copies that exceed an expert's
// capacity.
template <typename S>
void drop_copies(const Operation& operation, const Where& where, Tensor<S>& experts);
template <typename S>
void compute_ends(const Operation& operation, const Where& where, const Operands<S>& operands);
template <typename S>
void compute_update(const Operation& operation, const Where& where, const Operands<S>& operands);

// `numbers` as a GEMM in 8 or 4 bits reads them: scale · (the nearest number of the format to
// number / scale, ties to even). Without a format, `numbers` unchanged. The scale belongs to the
// whole matrix or to each block of a row. It is the smallest power of two with which nothing
// exceeds the format's largest number: so a number rounds alike on every rank, unless it is 2^15
// times (e4m3) smaller than the largest one of its scale. Blocks of nvfp4 have a number of e4m3 as
// scale, times such a power of two for the whole matrix.
template <typename S>
Tensor<S> rounded(const Tensor<S>& numbers, const CastFormat& format);
// Puts matrices side by side and rounds them; a second output gets this rank's rows of the result.
template <typename S>
void cast(const Operation& operation, const Where& where, const Operands<S>& operands);
// A weight as a GEMM reads it: rounded where the operation casts weights, the weight itself in
// wider recipes.
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

// A range of elements of a matrix taken as one flat array.
struct FlatPart {
  Eigen::Index begin = 0, end = 0;
  bool has(Eigen::Index element) const { return element >= begin && element < end; }
};
// The part of `shard` where `size` elements are cut into `shards` parts of ⌈size/shards⌉; the last
// ones may be shorter.
FlatPart part_of(Eigen::Index size, int shards, int shard);

// Position in its sequence of `length` tokens of row `row` of context rank `context`. Of 2c equal
// chunks rank i has chunks i and 2c − 1 − i, so that causal masking leaves all ranks the same work.
// Under Ulysses, or where the chunks are not equal, rank i has the i-th of c runs. Example: with c
// = 2 and 8 tokens rank 0 has positions 0, 1, 6, 7 and rank 1 has 2 to 5.
std::int64_t dealt_position(const Plan& plan, std::int64_t length, int context, std::int64_t row);
// The inverse: the context rank that has a position, and its row of that sequence there.
struct DealtRow {
  int context = 0;
  std::int64_t row = 0;
};
DealtRow dealt_row(const Plan& plan, std::int64_t length, std::int64_t position);

// The sequence of the run and the position in it of row `row` in this rank's matrix of `rows` rows.
// `rows` tells whether the matrix has the tokens of all tensor-parallel ranks or only this rank's.
struct TokenPlace {
  std::int64_t sequence = 0, position = 0;
};
TokenPlace token_place(const Where& where, Eigen::Index row, Eigen::Index rows);

}  // namespace trainyard
