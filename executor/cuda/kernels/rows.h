// Rows of a matrix, each by a team of threads: as many as a row has packs of eight elements for, so
// that narrow rows (those of heads) do not leave most of a block idle. What a thread has of a row
// it brings at once and keeps, where that is little; else it reads it again.
#pragma once

#include "executor/cuda/kernels/access.h"

namespace trainyard {

struct RowTeams {
  int team = kBlock;     // threads of a row: 16, a warp, or the block
  int threads = kBlock;  // of a block
  int kept = 0;          // packs of a row that a thread keeps: 1, 2, 4; 0: none
};

// `most`: packs that a thread's registers have room for.
inline RowTeams row_teams(std::int64_t columns, int most = 4) {
  if (columns % 8 != 0) return {};
  const std::int64_t packs = columns / 8;
  RowTeams teams;
  teams.team = packs <= 16              ? 16
               : packs <= most * 32     ? 32
               : packs <= most * kBlock ? kBlock
                                        : 2 * kBlock;
  if (teams.team > kBlock) teams.threads = teams.team;
  const std::int64_t each = (packs + teams.team - 1) / teams.team;
  teams.kept = each > most ? 0 : each <= 2 ? static_cast<int>(each) : 4;
  return teams;
}
inline unsigned row_blocks(std::int64_t rows, const RowTeams& teams,
                           std::int64_t most = kMostBlocks) {
  const std::int64_t side_by_side = teams.threads / teams.team;
  return blocks_at_most((rows + side_by_side - 1) / side_by_side, most);
}

__device__ inline float team_sum(float mine, int team) {
  if (team > 32) return block_sum(mine);
  for (int away = team / 2; away > 0; away /= 2) mine += __shfl_xor_sync(~0u, mine, away);
  return mine;
}

// Calls visit(row) for every row of this thread's team, equally often in all threads of a block, so
// that they meet where teams sum up: beyond the last row with a row that is not there.
template <typename Visit>
__device__ inline void for_rows(std::int64_t rows, int team, const Visit& visit) {
  const std::int64_t teams = blockDim.x / static_cast<unsigned>(team);
  const std::int64_t mine = threadIdx.x / static_cast<unsigned>(team);
  for (std::int64_t first = blockIdx.x * teams; first < rows; first += gridDim.x * teams) {
    visit(first + mine);
  }
}

// A thread's packs of N elements of one row: those from its place in the team on.
template <int N, int kKept>
struct RowShare {
  std::int64_t columns;
  int team;

  // visit(k, column): its k-th
  template <typename Visit>
  __device__ void each(const Visit& visit) const {
    const std::int64_t lane = threadIdx.x % static_cast<unsigned>(team);
    if constexpr (kKept == 0) {
      for (std::int64_t c = lane * N; c < columns; c += std::int64_t{N} * team) visit(0, c);
    } else {
#pragma unroll
      for (int k = 0; k < kKept; ++k) {
        const std::int64_t c = (lane + std::int64_t{k} * team) * N;
        if (c < columns) visit(k, c);
      }
    }
  }
};

// Of one matrix, what a thread has of a row.
template <int N, int kKept>
struct RowPart {
  Raw kept[kKept > 0 ? kKept : 1];

  __device__ void bring(const View& of, std::int64_t row, const RowShare<N, kKept>& share) {
    if constexpr (kKept > 0) {
      share.each([&](int k, std::int64_t c) { kept[k] = fetch(of, row * of.columns + c); });
    }
  }
  __device__ Pack<N> pack(const View& of, std::int64_t row, int k, std::int64_t c) const {
    const std::int64_t i = row * of.columns + c;
    if constexpr (kKept > 0) return unpacked<N>(of, i, kept[k]);
    return load<N>(of, i);
  }
};

// Calls begin() with the sizes of the kernel<N, kKept> that rows in teams take, as a type.
template <int N, int kKept>
struct RowSizes {
  static constexpr int n = N, kept = kKept;
};
template <typename Begin>
void with_row_sizes(std::int64_t columns, const RowTeams& teams, const Begin& begin) {
  if (columns % 8 != 0) return begin(RowSizes<1, 0>{});
  if (teams.kept == 1) return begin(RowSizes<8, 1>{});
  if (teams.kept == 2) return begin(RowSizes<8, 2>{});
  if (teams.kept == 4) return begin(RowSizes<8, 4>{});
  begin(RowSizes<8, 0>{});
}

// ---- Sums of columns ------------------------------------------------------------------------

// Rows in strips, so that there are enough blocks; a strip's sums are a row of what is summed next.
struct Strips {
  explicit Strips(const View& of) {
    constexpr std::int64_t kRows = 128, kMost = 64, kBlocks = 1024;
    const std::int64_t across = (of.columns + 255) / 256;
    const std::int64_t most = kBlocks / across > kMost ? kBlocks / across : kMost;
    count = of.rows < most * kRows ? (of.rows + kRows - 1) / kRows : most;
    rows = (of.rows + count - 1) / count;
  }
  template <int N>
  static unsigned across(const View& of) {
    return static_cast<unsigned>((of.columns + 32 * N - 1) / (32 * N));
  }
  std::int64_t count = 0, rows = 0;  // of each
};

// Over rows first … end − 1 of `of`, by block x, which has N columns for each lane. value(row,
// element) is what is summed up, leave(column, sums) gets it.
template <int N, typename Value, typename Leave>
__device__ inline void sum_rows(const View& of, std::int64_t first, std::int64_t end,
                                const Value& value, const Leave& leave) {
  __shared__ float sums[kBlock * N];
  const std::int64_t lane = threadIdx.x % 32;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * 32 + lane) * N;
  Pack<N> sum{};
  if (column < of.columns) {
    for (std::int64_t row = first + threadIdx.x / 32; row < end; row += blockDim.x / 32) {
      const Pack<N> more = value(row, row * of.columns + column);
      for (int k = 0; k < N; ++k) sum.x[k] += more.x[k];
    }
  }
  for (int k = 0; k < N; ++k) sums[k * kBlock + threadIdx.x] = sum.x[k];
  __syncthreads();
  if (threadIdx.x >= 32 || column >= of.columns) return;
  for (unsigned other = threadIdx.x + 32; other < blockDim.x; other += 32) {
    for (int k = 0; k < N; ++k) sum.x[k] += sums[k * kBlock + other];
  }
  leave(column, sum);
}

// Of strip y of the rows, by block (x, y), to that row of `parts`.
template <int N, typename Value>
__device__ inline void sum_strip(const View& parts, const View& of, std::int64_t strip,
                                 const Value& value) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * strip;
  const std::int64_t end = first + strip < of.rows ? first + strip : of.rows;
  sum_rows<N>(of, first, end, value, [&](std::int64_t column, const Pack<N>& sum) {
    store<N>(parts, static_cast<std::int64_t>(blockIdx.y) * of.columns + column, sum);
  });
}

// ---- Rows whose first element may lie anywhere -------------------------------------------------

// Eight at a time where they are aligned (each_of), whatever the width. Requires: the matrix begins
// where eight are.
inline bool begins_even(const View& view) { return even_place({&view}) == 0; }
__device__ inline Stretch stretch_of_row(const View& of, std::int64_t row, std::int64_t columns) {
  return {row * of.columns, row * of.columns + columns, 0};
}

}  // namespace trainyard
