#include "simulator/life/tuning.h"

#include <algorithm>
#include <cmath>

namespace trainyard {
namespace {

constexpr int kSteps = 8;  // to either side
constexpr int kStepsAnOctave = 4;

bool stopped(const CampaignOptions& options) {
  return options.interrupted != nullptr && *options.interrupted;
}

// Mean goodput; 0 when interrupted before the first run. Progress is that of all candidates.
double goodput_of(const LifeSettings& settings, CampaignOptions options) {
  options.progress = nullptr;
  const std::vector<Life> lives = live_many(settings, options);
  return lives.empty() ? 0 : summary_of(lives).goodput.mean;
}

int next_rung(int spares) {
  return std::max(spares + 1, (spares & (spares - 1)) == 0 ? spares * 3 / 2 : spares / 3 * 4);
}

}  // namespace

std::optional<BestInterval> best_interval(LifeSettings settings, const CampaignOptions& options) {
  const Seconds around = settings.interval;
  BestInterval best;
  for (int k = -kSteps; k <= kSteps && !stopped(options); ++k) {
    settings.interval = around * std::exp2(static_cast<double>(k) / kStepsAnOctave);
    if (settings.interval < settings.step) continue;
    const double goodput = goodput_of(settings, options);
    if (goodput > best.goodput) best = {settings.interval, goodput};
    if (options.progress) options.progress((k + kSteps) / (2.0 * kSteps));
  }
  return stopped(options) ? std::nullopt : std::optional(best);
}

std::optional<BestSpares> best_spares(LifeSettings settings, const CampaignOptions& options) {
  BestSpares best;
  double best_yield = 0;
  int worse = 0;  // in a row
  for (int spares = 0; spares <= settings.nodes && worse < 2 && !stopped(options);
       spares = next_rung(spares)) {
    settings.spares = spares;
    const double goodput = goodput_of(settings, options);
    const double yield = goodput / (settings.nodes + spares);
    worse = yield > best_yield ? 0 : worse + 1;
    if (yield > best_yield) {
      best = {spares, goodput};
      best_yield = yield;
    }
  }
  return stopped(options) ? std::nullopt : std::optional(best);
}

}  // namespace trainyard
