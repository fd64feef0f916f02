// What a run costs: device-hours, energy, carbon (handbook §11). Spares are paid and draw what a
// waiting device draws; training, work done twice included, draws what the estimate says,
// everything else what waiting does.
#pragma once

#include <optional>

#include "model/cost/estimate.h"
#include "simulator/life/campaign.h"

namespace trainyard {

struct Bill {
  std::optional<Dollars> cost;
  std::optional<Joules> energy;
};

// `step`: of the plan that was run on the cluster. Nothing is known of runs that were given up.
Bill bill_of(const Cluster& cluster, const Estimate& step, const LifeSettings& settings,
             const Campaign& campaign);

}  // namespace trainyard
