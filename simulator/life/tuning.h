// What to choose, found by simulating it: the checkpoint interval of the best goodput, and the
// number of spares that trains the most work a node-hour. All candidates live through the same
// failures (common random numbers), so that they differ by the choice alone.
#pragma once

#include <optional>

#include "simulator/life/campaign.h"

namespace trainyard {

struct BestInterval {
  Seconds interval;
  double goodput = 0;
};
// Among the intervals of settings.interval · 2^(k/4), |k| <= 8, that are no shorter than a step.
// Nothing when interrupted.
std::optional<BestInterval> best_interval(LifeSettings settings, const CampaignOptions& options);

struct BestSpares {
  int spares = 0;
  double goodput = 0;
};
// Of the ladder 0, 1, 2, 3, 4, 6, 8, 12, …, spares paid like nodes at work. Nothing when
// interrupted.
std::optional<BestSpares> best_spares(LifeSettings settings, const CampaignOptions& options);

}  // namespace trainyard
