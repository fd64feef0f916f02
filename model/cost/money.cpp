#include "model/cost/money.h"

namespace trainyard {
namespace {

// Share of its full power that a device of a running job draws while it waits. H100 boards idle in
// a collective near 250 W of 700 W (Patel et al. 2024, "Characterizing Power Management
// Opportunities for LLMs in the Cloud", Fig. 4).
constexpr double kWaitingShare = 0.35;

}  // namespace

std::optional<Dollars> cost_of(const Cluster& cluster, Seconds time) {
  if (!cluster.device.price) return std::nullopt;
  return *cluster.device.price * time * static_cast<double>(cluster.devices());
}

std::optional<Joules> energy_of(const Cluster& cluster, Seconds time, Seconds busy) {
  if (cluster.device.power.value() <= 0) return std::nullopt;
  const Seconds full_power_time = busy + (time - busy) * kWaitingShare;
  return cluster.device.power * full_power_time * static_cast<double>(cluster.devices()) *
         cluster.pue;
}

}  // namespace trainyard
