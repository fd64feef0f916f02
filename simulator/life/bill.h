// What a run costs: device-hours, energy, carbon (handbook §11). Spares are paid like other nodes
// and draw the power of a waiting device. While the job trains, also work that it repeats, devices
// draw what the estimate says; all other time they draw the power of waiting.
#pragma once

#include <optional>

#include "model/cost/estimate.h"
#include "simulator/life/campaign.h"

namespace trainyard {

struct Bill {
  std::optional<Dollars> cost;
  std::optional<Joules> energy;
};

// The mean bill of a campaign's runs. `step`: the estimate of the plan that was run on the cluster.
// Empty where some runs were given up, because what they would have cost is not known.
Bill bill_of(const Cluster& cluster, const Estimate& step, const LifeSettings& settings,
             const Campaign& campaign);

}  // namespace trainyard
