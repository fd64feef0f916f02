// Money and energy of a step: device-time × price; device power × time × PUE (handbook §11).
#pragma once

#include <optional>

#include "model/cluster/cluster.h"
#include "model/units.h"

namespace trainyard {

// Unknown (no value) where the device has no price.
std::optional<Dollars> cost_of(const Cluster& cluster, Seconds time);

// A device draws its power while it computes (`busy` of `time`) and 35 % of it while it waits
// (Patel et al. 2024; model/cost/money.cpp). Unknown where the device has no power figure.
std::optional<Joules> energy_of(const Cluster& cluster, Seconds time, Seconds busy);

}  // namespace trainyard
