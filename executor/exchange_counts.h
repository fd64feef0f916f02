// How many numbers a collective moves for each member of its group, and which heads go where: what
// the exchanges of the host (executor/cpu/exchange.cpp) and of a device
// (executor/cuda/device_exchange.cpp) have in common.
#pragma once

#include <cstdint>
#include <span>

#include "executor/transport/transport.h"
#include "model/workload/operators.h"

namespace trainyard {

// As many for each member.
Counts even_counts(int members, std::int64_t size);
Counts scaled_counts(Counts counts, std::int64_t factor);
std::int64_t sum_of(const Counts& counts);

// Rows for each member, of rows counted by expert (or by source and expert).
Counts rows_by_member(int members, std::span<const float> by_expert);

// Of an array in flat parts (part_of in executor/cpu/kernels/kernels.h); the last may be shorter.
Counts part_counts(int members, std::int64_t size);

// Heads of all tokens and tokens of all heads. Where the block of one sequence and one pair of
// members is: in the member's share of the heads (`row`), and among all heads of the other's tokens
// (`column`). Where there are fewer heads than members, neighbours share one.
struct HeadBlocks {
  std::int64_t width = 1, share = 1, heads = 1, part = 0, sequences = 1, members = 1;

  std::int64_t rows() const { return sequences * part; }  // of the message to one member
  std::int64_t columns() const { return share * width; }
  std::int64_t size() const { return rows() * columns(); }
  std::int64_t column(std::int64_t holder) const { return holder * heads / members * width; }
  std::int64_t row(std::int64_t sequence, std::int64_t owner) const {
    return (sequence * members + owner) * part;
  }
};
// `rows` × `columns`: the matrix that has all heads.
HeadBlocks head_blocks(const AttentionShape& shape, int members, std::int64_t rows,
                       std::int64_t columns);

}  // namespace trainyard
