#include "simulator/life/bill.h"

#include "model/cost/money.h"

namespace trainyard {

Bill bill_of(const Cluster& cluster, const Estimate& step, const LifeSettings& settings,
             const Campaign& campaign) {
  if (!all_ended(settings, campaign)) return {};
  const Seconds wall(campaign.wall.mean);
  const Seconds trained =
      campaign.of(Spent::useful) + campaign.of(Spent::lost) + campaign.of(Spent::degraded);
  const double with_spares = 1 + static_cast<double>(settings.spares) / settings.nodes;
  Bill bill;
  if (const auto cost = cost_of(cluster, wall)) bill.cost = *cost * with_spares;
  if (step.energy_per_step) {
    const Joules waiting = energy_of(cluster, wall * with_spares - trained, Seconds(0)).value();
    bill.energy = *step.energy_per_step * (trained / step.step_time) + waiting;
  }
  return bill;
}

}  // namespace trainyard
