// How a message between two sets of NICs is split into lanes, one NIC of each side to a lane. There
// are as many lanes as the larger set has NICs, and the NICs of the smaller set carry equal parts,
// as the channels of a collective library do. Example: 2 NICs to 3: lanes 0→0 and 0→2 with 1/4 each
// and 1→1 with 1/2.
#pragma once

#include <algorithm>
#include <cstddef>

namespace trainyard {

// Calls `visit(from, to, share)` for each lane: the places of its NICs in their lists, and its
// share of the message. Lane i joins place i of both lists, the shorter one repeated. Requires:
// leaving, arriving >= 1.
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
