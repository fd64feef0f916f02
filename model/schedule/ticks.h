// Times as whole numbers, so that sums do not depend on their order. A tick is a picosecond, or a
// coarser unit if the longest time, which the owner of the clock states, would not fit 64 bits (up
// to 53 days of picoseconds do).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "model/units.h"

namespace trainyard {

using Ticks = std::int64_t;

class TickClock {
 public:
  // Requires: no time or sum of times exceeds `longest`.
  explicit TickClock(Seconds longest)
      : per_second_(std::min(1e12, 0x1p62 / longest.value())), second_(1 / per_second_) {}

  Ticks ticks(Seconds time) const { return std::llround(time.value() * per_second_); }
  Seconds seconds(Ticks ticks) const { return Seconds(static_cast<double>(ticks) * second_); }

 private:
  double per_second_, second_;
};

}  // namespace trainyard
