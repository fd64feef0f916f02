// Counter-based random numbers: a function of where a number stands, so that hosts and devices, and
// every sharding, draw the same ones.
#pragma once

#include <cstdint>

#include "model/hash.h"

namespace trainyard {

constexpr double uniform_signed(std::uint64_t x) {  // −1 … 1
  return static_cast<double>(mixed(x) >> 11) * 0x1p-52 - 1;
}

// Whether dropout keeps a number: `site` tells the places in a layer apart, `row` and `column` the
// number. Sequences are counted over the whole run.
struct DropoutPlace {
  int site = 0, layer = -1;
  std::int64_t sequence = 0, row = 0, column = 0;
};
// What the numbers of a row have in common; `column` is not looked at.
constexpr std::uint64_t dropout_row(std::uint64_t seed, const DropoutPlace& place) {
  std::uint64_t x = seed + static_cast<std::uint64_t>(place.site);
  x = mixed(x + static_cast<std::uint64_t>(std::int64_t{place.layer} + 1));
  x = mixed(x + static_cast<std::uint64_t>(place.sequence + 1));
  return mixed(x + static_cast<std::uint64_t>(place.row + 1));
}
// One word of draws serves two columns, an even one (its low half) and the next: drawing must not
// take longer than memory does. Kept is what draws no less than the threshold, of 2³².
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

// Number `i` of the `message`-th message in the place of one that nobody sent: tokens are unlike,
// as those of a network are, and go to unlike experts.
constexpr int kMessageShifts = 1021;
constexpr float message_noise(std::uint64_t message, std::uint64_t i) {
  const auto draw = static_cast<float>(mixed(i + message % kMessageShifts) >> 40);
  return 0.01F * (draw * 0x1p-23F - 1);
}

}  // namespace trainyard
