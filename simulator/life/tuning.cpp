#include "simulator/life/tuning.h"

#include <algorithm>
#include <cmath>

#include "model/interrupted.h"
#include "simulator/life/failures.h"
#include "simulator/life/run.h"

namespace trainyard {
namespace {

constexpr int kSteps = 8;  // candidates without a gain that end a search
constexpr int kStepsAnOctave = 4;

bool stopped(const CampaignOptions& options) { return is_set(options.interrupted); }

// Fewer runs for a candidate if each has many events, so that a candidate costs no more than the
// longest run allowed.
int bearable_runs(const LifeSettings& settings, int runs) {
  return static_cast<int>(std::clamp(kMostEvents / expected_events(settings), 1.0, 1.0 * runs));
}

// Mean goodput; 0 if interrupted before the first run. Progress is reported over all candidates,
// not here.
double goodput_of(const LifeSettings& settings, CampaignOptions options) {
  options.progress = nullptr;
  const std::vector<Life> lives = live_many(settings, options);
  return lives.empty() ? 0 : summary_of(lives).goodput.mean;
}

struct IntervalSearch {
  LifeSettings settings;
  const CampaignOptions& options;
  BestInterval best{};
  int tried = 0;

  double goodput_with(Seconds interval) {
    settings.interval = interval;
    ++tried;
    return goodput_of(settings, options);
  }

  // Tries an interval. True: it is the best so far.
  bool take(Seconds interval) {
    const double goodput = goodput_with(interval);
    const bool better = goodput > best.goodput;
    if (better) best = {interval, goodput};
    return better;
  }

  bool can_be(Seconds interval) {
    settings.interval = interval;
    return interval >= settings.step && interval <= settings.work &&
           expected_events(settings) <= kMostEvents;
  }

  // Searches up (1) or down (−1) from `around`. `left`: candidates yet to be tried elsewhere, for
  // the progress.
  void walk(Seconds around, int direction, int left) {
    int worse = 0;  // in a row
    for (int k = 1; worse < kSteps && !stopped(options); ++k) {
      const Seconds interval =
          around * std::exp2(static_cast<double>(direction * k) / kStepsAnOctave);
      if (!can_be(interval)) return;
      worse = take(interval) ? 0 : worse + 1;
      if (options.progress) options.progress(1.0 * tried / (tried + kSteps - worse + left));
    }
  }
};

// ---- Spares --------------------------------------------------------------------------------

// The most nodes that are in repair at once, rarely exceeded: their mean is losses · repair; their
// variance is at most that of failures that lose all their nodes at once.
int most_in_repair(const LifeSettings& settings) {
  constexpr double kDeviations = 6;  // 4 would do for a Poisson law; more for failures in bursts
  constexpr double kMost = 1e6;
  const Failures::Losses losses = Failures(settings, 0).losses();
  const double repair = settings.reliability.repair.value();
  double most = losses.nodes * repair + kDeviations * std::sqrt(losses.squared_nodes * repair) +
                losses.most_at_once;
  for (const TracedFailure& failure : settings.reliability.trace) {
    most += std::min(settings.nodes, failure.nodes);
  }
  return static_cast<int>(std::ceil(std::min(most, kMost)));
}

int next_rung(int spares) {
  return std::max(spares + 1, (spares & (spares - 1)) == 0 ? spares * 3 / 2 : spares / 3 * 4);
}

// The ladder up to the first rung that is at least `most`.
std::vector<int> ladder_to(int most) {
  std::vector<int> ladder = {0};
  while (ladder.back() < most) ladder.push_back(next_rung(ladder.back()));
  return ladder;
}

}  // namespace

std::optional<BestInterval> best_interval(LifeSettings settings, Seconds around,
                                          CampaignOptions options) {
  const Seconds taken = settings.interval;
  settings.interval = std::max(around, settings.step);
  options.runs = bearable_runs(settings, options.runs);
  IntervalSearch search{.settings = settings, .options = options};
  if (search.can_be(settings.interval)) search.take(settings.interval);
  search.walk(settings.interval, -1, kSteps);
  search.walk(settings.interval, 1, 0);
  const double of_taken = search.goodput_with(taken);
  BestInterval best = search.best;
  if (of_taken > best.goodput) best = {taken, of_taken};
  best.goodput_of_taken = of_taken;
  const bool known = !stopped(options) && best.goodput > 0;
  return known ? std::optional(best) : std::nullopt;
}

std::optional<BestSpares> best_spares(LifeSettings settings, CampaignOptions options) {
  options.runs = bearable_runs(settings, options.runs);
  std::vector<int> numbers = ladder_to(most_in_repair(settings));
  numbers.push_back(settings.spares);
  BestSpares best;
  double best_yield = 0;
  for (const int spares : numbers) {
    if (stopped(options)) return std::nullopt;
    settings.spares = spares;
    const double goodput = goodput_of(settings, options);
    const double yield = goodput / (settings.nodes + spares);
    if (yield <= best_yield) continue;
    best = {spares, goodput};
    best_yield = yield;
  }
  return stopped(options) || best_yield == 0 ? std::nullopt : std::optional(best);
}

}  // namespace trainyard
