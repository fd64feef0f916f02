// Money and energy of a step: device-time × price; device power × time × PUE (handbook §11).
#pragma once

#include <optional>

#include "model/cluster/cluster.h"
#include "model/units.h"

namespace trainyard {

// Unknown (no value) where the device has no price.
std::optional<Dollars> cost_of(const Cluster& cluster, Seconds time);

// A device draws its idle share always and the rest in proportion to the time it computes
// (`busy` of `time`). Unknown where the device has no power figure.
std::optional<Joules> energy_of(const Cluster& cluster, Seconds time, Seconds busy);

}  // namespace trainyard
