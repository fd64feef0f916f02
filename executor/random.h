// Counter-based random numbers: each is a function of a seed and of its place in the network or
// batch, so that hosts and devices, and every sharding, draw the same numbers.
#pragma once

#include <cstdint>

#include "model/hash.h"

namespace trainyard {

constexpr double uniform_signed(std::uint64_t x) {  // −1 … 1
  return static_cast<double>(mixed(x) >> 11) * 0x1p-52 - 1;
}

// The place of an element that dropout may drop. `site` tells apart the dropouts within a layer;
// `row` and `column` name the element. Sequences are counted over the whole run.
struct DropoutPlace {
  int site = 0, layer = -1;
  std::int64_t sequence = 0, row = 0, column = 0;
};
// The hash that all elements of a row share; `column` is not used.
constexpr std::uint64_t dropout_row(std::uint64_t seed, const DropoutPlace& place) {
  std::uint64_t x = seed + static_cast<std::uint64_t>(place.site);
  x = mixed(x + static_cast<std::uint64_t>(std::int64_t{place.layer} + 1));
  x = mixed(x + static_cast<std::uint64_t>(place.sequence + 1));
  return mixed(x + static_cast<std::uint64_t>(place.row + 1));
}
// One 64-bit draw serves two columns, an even one (low half) and the next (high half): drawing must
// not take longer than the memory traffic. An element is kept where its 32 bits are not below the
// threshold.
constexpr std::uint64_t dropout_draws(std::uint64_t row, std::uint64_t pair) {
  return mixed(row + pair + 1);
}
constexpr std::uint32_t dropout_threshold(double rate) {  // rate < 1
  return static_cast<std::uint32_t>(rate * 0x1p32);
}
constexpr bool is_kept(std::uint64_t seed, const DropoutPlace& place, double rate) {
  const auto column = static_cast<std::uint64_t>(place.column);
  const std::uint64_t draws = dropout_draws(dropout_row(seed, place), column / 2);
  return static_cast<std::uint32_t>(draws >> (column % 2 * 32)) >= dropout_threshold(rate);
}

// Number `i` of the `message`-th message, where a rank runs without the peer that would send it.
// Tokens differ from each other, as those of a real network do, so that routing spreads them over
// the experts.
constexpr int kMessageShifts = 1021;
constexpr float message_noise(std::uint64_t message, std::uint64_t i) {
  const auto draw = static_cast<float>(mixed(i + message % kMessageShifts) >> 40);
  return 0.01F * (draw * 0x1p-23F - 1);
}

}  // namespace trainyard
