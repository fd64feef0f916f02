// The time that a search takes, and what is left of what it may take.
#pragma once

#include <algorithm>
#include <chrono>

#include "model/units.h"

namespace trainyard {

// Of a limit that is over there is a little left: 0 would be none.
inline Seconds left_until(Seconds end, Seconds now) {
  constexpr Seconds kLeast(1e-3);
  return std::max(kLeast, end - now);
}

// Runs from when it is made.
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
