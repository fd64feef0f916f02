// The clock of a whole run: integer nanoseconds up to kNever, 73 years, so that the parts of a run
// sum to its length exactly. A time is rounded once, when it is drawn or read.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "model/units.h"

namespace trainyard {

using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

// Later than the end of any run. Two of them can be added without overflow.
inline constexpr Nanoseconds kNever{std::int64_t{1} << 61};

inline Nanoseconds to_nanoseconds(Seconds time) {
  const double count = std::round(time.value() * 1e9);
  return count < static_cast<double>(kNever.count()) ? Nanoseconds(static_cast<std::int64_t>(count))
                                                     : kNever;
}
inline Seconds to_seconds(Nanoseconds time) {
  return Seconds(static_cast<double>(time.count()) * 1e-9);
}

inline Nanoseconds scaled(Nanoseconds time, double factor) {
  return Nanoseconds(static_cast<std::int64_t>(std::min(
      std::ceil(static_cast<double>(time.count()) * factor), static_cast<double>(kNever.count()))));
}

}  // namespace trainyard
