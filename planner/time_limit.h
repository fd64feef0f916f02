// What is left of the time that a search may take.
#pragma once

#include <algorithm>

#include "model/units.h"

namespace trainyard {

// Of a limit that is over there is a little left: 0 would be none.
inline Seconds left_until(Seconds end, Seconds now) {
  constexpr Seconds kLeast(1e-3);
  return std::max(kLeast, end - now);
}

}  // namespace trainyard
