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
// Of the interval of the settings and of around · 2^(k/4) that are no shorter than a step: to
// either side until eight in a row, a factor of four, are no better. `around`: where the closed
// form has its best. Nothing when interrupted, or where no interval gets the job anywhere.
std::optional<BestInterval> best_interval(LifeSettings settings, Seconds around,
                                          CampaignOptions options);

struct BestSpares {
  int spares = 0;
  double goodput = 0;
};
// Of the spares of the settings and of the ladder 0, 1, 2, 3, 4, 6, 8, 12, … up to as many as are
// ever in repair at once, spares paid like nodes at work. Nothing when interrupted, or where no
// number gets the job anywhere.
std::optional<BestSpares> best_spares(LifeSettings settings, CampaignOptions options);

}  // namespace trainyard
