// Tunes two choices by simulation: the checkpoint interval of the best goodput, and the number of
// spares with the most work for each paid node-hour. All candidates live through the same failures
// (common random numbers), so that they differ by the choice alone.
#pragma once

#include <optional>

#include "simulator/life/campaign.h"

namespace trainyard {

struct BestInterval {
  Seconds interval;
  double goodput = 0;
  double goodput_of_taken = 0;  // of the interval of the settings, over the same lives
};
// The best of the settings' interval and of around · 2^(k/4), k = 0, ±1, ±2, …, no shorter than a
// step and no longer than the work. In each direction the search stops after eight candidates in a
// row (a factor of four) without a gain. `around`: the optimum of the closed form. None when
// interrupted, or where no interval makes progress.
std::optional<BestInterval> best_interval(LifeSettings settings, Seconds around,
                                          CampaignOptions options);

struct BestSpares {
  int spares = 0;
  double goodput = 0;
};
// The best of the settings' number of spares and of 0, 1, 2, 3, 4, 6, 8, 12, … up to the most nodes
// that are ever in repair at once, by goodput / (nodes + spares): spares are paid like nodes at
// work. None when interrupted, or where no number makes progress.
std::optional<BestSpares> best_spares(LifeSettings settings, CampaignOptions options);

}  // namespace trainyard
