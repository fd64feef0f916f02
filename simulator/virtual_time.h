// The simulator's clock: whole picoseconds in 64 bits, a range of 106 days. Sums of integers are
// exact, so a run is deterministic to the bit and the closed forms of handbook §8 come out exactly.
// A duration is rounded once, when a task or a transfer is created (docs/adr/0003-clock.md). A time
// beyond the range becomes kEndOfClock, so that times stay ordered; a step that reaches it is an
// error.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ratio>

#include "model/units.h"

namespace trainyard {

using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

inline constexpr double kPicosecondsPerSecond = 1e12;

// Stands for every time beyond the range: the largest double below 2^63.
inline constexpr Picoseconds kEndOfClock{0x7fff'ffff'ffff'fc00};

// Rounds to whole picoseconds, at most kEndOfClock. Requires: not below the range of 64 bits.
inline Picoseconds rounded_picoseconds(double picoseconds) {
  constexpr auto kLast = static_cast<double>(kEndOfClock.count());
  return Picoseconds(std::llround(std::min(kLast, picoseconds)));
}
inline Picoseconds to_picoseconds(Seconds time) {
  return rounded_picoseconds(time.value() * kPicosecondsPerSecond);
}
inline Seconds to_seconds(Picoseconds time) {
  return Seconds(static_cast<double>(time.count()) / kPicosecondsPerSecond);
}

// time + delay, at most kEndOfClock. Requires: neither is negative.
constexpr Picoseconds later(Picoseconds time, Picoseconds delay) {
  const auto sum =
      static_cast<std::uint64_t>(time.count()) + static_cast<std::uint64_t>(delay.count());
  constexpr auto kLast = static_cast<std::uint64_t>(kEndOfClock.count());
  return Picoseconds(static_cast<std::int64_t>(std::min(sum, kLast)));
}

}  // namespace trainyard
