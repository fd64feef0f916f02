// The lanes between the NICs of two sides: every NIC has one at least, and those of the side with
// fewer carry equal parts, as channels of a library that all leave and arrive once do.
#pragma once

#include <algorithm>
#include <cstddef>

namespace trainyard {

// `visit` takes the places of both ends in their lists, and the share of what is sent. Place i is
// joined to place i, the shorter list in turn. Requires: both have one.
template <typename Visit>
void for_each_lane(std::size_t leaving, std::size_t arriving, Visit visit) {
  const std::size_t lanes = std::max(leaving, arriving);
  const std::size_t fewer = std::min(leaving, arriving);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::size_t place = lane % fewer;
    const std::size_t sharing = lanes / fewer + (place < lanes % fewer ? 1 : 0);
    visit(lane % leaving, lane % arriving, 1.0 / static_cast<double>(fewer * sharing));
  }
}

}  // namespace trainyard
