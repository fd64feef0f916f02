// Measures the time of a search, and what is left of its limit.
#pragma once

#include <algorithm>
#include <chrono>

#include "model/units.h"

namespace trainyard {

// The time left until `end`, at least 1 ms: as a limit, 0 would mean none.
inline Seconds left_until(Seconds end, Seconds now) {
  constexpr Seconds kLeast(1e-3);
  return std::max(kLeast, end - now);
}

// Runs from its construction on.
class Stopwatch {
 public:
  Seconds elapsed() const {
    return Seconds(std::chrono::duration<double>(Clock::now() - start_).count());
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now();
};

}  // namespace trainyard
