// MPI counts elements in an int; larger messages are moved in several calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/expected.h"

namespace trainyard {

// Most elements in one call.
inline constexpr std::int64_t kLargestCount = std::numeric_limits<int>::max();

// Calls move(first, count) over `size` elements in their order, at most `largest` in a call, until
// one fails. Never calls it where there are none.
template <typename Move>
Expected<void> in_pieces(std::int64_t size, std::int64_t largest, const Move& move) {
  for (std::int64_t first = 0; first < size; first += largest) {
    auto moved = move(first, static_cast<int>(std::min(largest, size - first)));
    if (!moved) return moved;
  }
  return {};
}

}  // namespace trainyard
