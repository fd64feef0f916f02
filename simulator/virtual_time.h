// The simulator's clock: whole picoseconds in 64 bits, 106 days of range. Sums of integers are
// exact, so a run is deterministic to the bit and the closed forms of handbook §8 come out exactly.
// A duration is rounded once, when a task or a transfer is created (docs/adr/0003-clock.md).
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <ratio>

#include "model/units.h"

namespace trainyard {

using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

inline constexpr double kPicosecondsPerSecond = 1e12;

inline Picoseconds to_picoseconds(Seconds time) {
  return Picoseconds(std::llround(time.value() * kPicosecondsPerSecond));
}
inline Seconds to_seconds(Picoseconds time) {
  return Seconds(static_cast<double>(time.count()) / kPicosecondsPerSecond);
}

}  // namespace trainyard
