// Where tokens stand, and what dropout keeps of them, in kernels.
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

// 1 for each of N elements of a row that is kept, 0 for the others.
template <int N>
__device__ inline Pack<N> kept_of(const Dropout& dropout, std::int64_t row, std::int64_t column) {
  const std::uint64_t common =
      dropout_row(dropout.seed, {dropout.site, dropout.layer, sequence_of(dropout.places, row),
                                 position_of(dropout.places, row)});
  Pack<N> kept;
  for (int k = 0; k < N; ++k) {
    kept.x[k] = is_kept_in(common, column + k, dropout.rate) ? 1.0F : 0.0F;
  }
  return kept;
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
