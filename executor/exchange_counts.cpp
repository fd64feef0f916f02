#include "executor/exchange_counts.h"

#include <algorithm>
#include <numeric>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {

Counts even_counts(int members, std::int64_t size) {
  return Counts(static_cast<std::size_t>(members), size);
}

Counts scaled_counts(Counts counts, std::int64_t factor) {
  for (std::int64_t& count : counts) count *= factor;
  return counts;
}

std::int64_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

Counts rows_by_member(int members, std::span<const float> by_expert) {
  const std::size_t share = by_expert.size() / static_cast<std::size_t>(members);
  Counts rows;
  rows.reserve(static_cast<std::size_t>(members));
  for (std::size_t member = 0; member < static_cast<std::size_t>(members); ++member) {
    const auto own = by_expert.subspan(member * share, share);
    rows.push_back(static_cast<std::int64_t>(std::accumulate(own.begin(), own.end(), 0.0)));
  }
  return rows;
}

Counts part_counts(int members, std::int64_t size) {
  Counts counts;
  counts.reserve(static_cast<std::size_t>(members));
  for (int member = 0; member < members; ++member) {
    const FlatPart part = part_of(size, members, member);
    counts.push_back(part.end - part.begin);
  }
  return counts;
}

HeadBlocks head_blocks(const AttentionShape& shape, int members, std::int64_t rows,
                       std::int64_t columns) {
  HeadBlocks blocks;
  if (shape.query_head_dim > 0) blocks.width = static_cast<std::int64_t>(shape.query_head_dim);
  blocks.sequences = static_cast<std::int64_t>(shape.batch);
  blocks.members = members;
  blocks.heads = columns / blocks.width;
  blocks.share = std::max<std::int64_t>(1, blocks.heads / blocks.members);
  blocks.part = rows / blocks.sequences;
  return blocks;
}

}  // namespace trainyard
