// How many numbers a collective moves for each member of its group, and which attention heads go
// where. The exchanges of the host (executor/cpu/exchange.cpp) and of a device
// (executor/cuda/device_exchange.cpp) share this arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "executor/transport/transport.h"
#include "model/workload/operators.h"

namespace trainyard {

// `size` for each of `members` members.
Counts even_counts(int members, std::int64_t size);
Counts scaled_counts(Counts counts, std::int64_t factor);
std::int64_t sum_of(const Counts& counts);

// Rows that each member has, summed up from a count for each expert (or for each source and
// expert). Example: 4 experts with 3, 1, 0, 2 rows on 2 members are 4 and 2 rows.
Counts rows_by_member(int members, std::span<const float> by_expert);

// Elements in each member's flat part of an array of `size` elements (part_of in
// executor/cpu/kernels/kernels.h); the last part may be shorter.
Counts part_counts(int members, std::int64_t size);

// The Ulysses all-to-all between two layouts: some heads of all tokens, and all heads of some
// tokens. One block of a message belongs to one sequence and one pair of members. It begins at
// `row` of the matrix with some heads and at `column` of the matrix with all heads. Where there are
// fewer heads than members, neighbours share a head: with 2 heads on 4 members, members 0 and 1
// have head 0.
struct HeadBlocks {
  // `width`: elements of a head; `share`: heads of a member; `part`: tokens of a sequence on a
  // member.
  std::int64_t width = 1, share = 1, heads = 1, part = 0, sequences = 1, members = 1;

  std::int64_t rows() const { return sequences * part; }  // rows of the message to one member
  std::int64_t columns() const { return share * width; }
  std::int64_t size() const { return rows() * columns(); }
  std::int64_t column(std::int64_t holder) const { return holder * heads / members * width; }
  std::int64_t row(std::int64_t sequence, std::int64_t owner) const {
    return (sequence * members + owner) * part;
  }
};
// `rows` × `columns` is the shape of the matrix that has all heads.
HeadBlocks head_blocks(const AttentionShape& shape, int members, std::int64_t rows,
                       std::int64_t columns);

}  // namespace trainyard
