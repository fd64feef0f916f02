// What the compute operations of a program do, in double and one after the other: the plainest
// arithmetic that has the meaning of model/program/operation.h.
#pragma once

#include <vector>

#include "model/program/view.h"
#include "tests/model/program/interpreter/setting.h"

namespace trainyard::interpreter {

// The operands of one operation on one rank, by access and in their order.
struct Operands {
  std::vector<const Matrix*> in;
  std::vector<Matrix*> out;  // of the size that the buffer has
  std::vector<Matrix*> in_place;
  std::vector<const ProgramBuffer*> in_buffers, in_place_buffers;
};

struct Where {
  const Setting& setting;
  RankCoordinates at;
  Tag tag;
  int shard = 0;  // of sharded states: which part is this rank's
};

void compute(const Operation& operation, const Where& where, const Operands& operands);

// The families, each in its file.
void compute_attention(const Operation& operation, const Where& where, const Operands& operands);
void compute_experts(const Operation& operation, const Where& where, const Operands& operands);
void compute_ends(const Operation& operation, const Where& where, const Operands& operands);
void compute_finish(const Operation& operation, const Where& where, const Operands& operands);

// Elements of a matrix that counts as one flat array.
struct FlatPart {
  Eigen::Index begin = 0, end = 0;
  bool has(Eigen::Index element) const { return element >= begin && element < end; }
};
FlatPart part_of(Eigen::Index size, int shards, int shard);

// Row `row` of a matrix with `rows` rows on this rank: which sequence of the global batch, which
// position in it. `rows` tells whether the matrix has the tokens of all tensor-parallel ranks.
struct TokenPlace {
  std::int64_t sequence = 0, position = 0;
};
// Where row `row` of context rank `context` stands in its sequence: rank i has the chunks i and
// 2c − 1 − i of 2c, so that causal masking leaves all ranks the same work; under Ulysses, or where
// the chunks do not come out even, one run.
std::int64_t dealt_position(const Setting& setting, int context, std::int64_t row);
TokenPlace token_place(const Where& where, Eigen::Index row, Eigen::Index rows);

}  // namespace trainyard::interpreter
