// Positions of tokens, and which elements dropout keeps, as kernels compute them.
#pragma once

#include "executor/cuda/kernels/access.h"

namespace trainyard {

// dealt_position of executor/cpu/kernels/kernels.h.
__device__ inline std::int64_t dealt(std::int64_t part, int context, int ranks, bool halves,
                                     std::int64_t row) {
  if (!halves) return context * part + row;
  const std::int64_t chunk = part / 2;
  return row < chunk ? context * chunk + row : (2 * ranks - 1 - context) * chunk + row - chunk;
}

__device__ inline std::int64_t position_of(const RowPlaces& places, std::int64_t row) {
  return dealt(places.part, places.context, places.ranks, places.halves,
               (row + places.offset) % places.part);
}
__device__ inline std::int64_t sequence_of(const RowPlaces& places, std::int64_t row) {
  return places.first_sequence + (row + places.offset) / places.part;
}

// The hash that all draws of a row share.
__device__ inline std::uint64_t dropout_row(const Dropout& dropout, std::int64_t row) {
  return dropout_row(dropout.seed, {dropout.site, dropout.layer, sequence_of(dropout.places, row),
                                    position_of(dropout.places, row)});
}
// Sets kept[k] to 1 where dropout keeps column `column` + k, else to 0.
template <int N>
__device__ inline void draw(unsigned char (&kept)[N], std::uint64_t row, unsigned column,
                            std::uint32_t threshold) {
  if constexpr (N == 1) {
    const std::uint64_t draws = dropout_draws(row, column / 2);
    kept[0] = static_cast<std::uint32_t>(draws >> (column % 2 * 32)) >= threshold ? 1 : 0;
  } else {
    static_assert(N % 2 == 0);
#pragma unroll
    for (int k = 0; k < N; k += 2) {
      const std::uint64_t draws = dropout_draws(row, column / 2 + k / 2);
      kept[k] = static_cast<std::uint32_t>(draws) >= threshold ? 1 : 0;
      kept[k + 1] = static_cast<std::uint32_t>(draws >> 32) >= threshold ? 1 : 0;
    }
  }
}

__device__ inline std::int64_t count_of(const TokenOrder& order) {
  return order.part * order.parts;
}
__device__ inline std::int64_t row_of(const TokenOrder& order, int sequence, std::int64_t i) {
  return i / order.part * order.part_rows + sequence * order.part + i % order.part;
}
__device__ inline std::int64_t position_of(const TokenOrder& order, std::int64_t i) {
  const int context = order.parts > 1 ? static_cast<int>(i / order.part) : order.context;
  return dealt(order.part, context, order.ranks, order.halves, i % order.part);
}

}  // namespace trainyard
