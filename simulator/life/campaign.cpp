#include "simulator/life/campaign.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "model/first_exception.h"
#include "model/interrupted.h"
#include "simulator/engine/random.h"
#include "simulator/life/run.h"

namespace trainyard {
namespace {

// Shared by the threads: the number of the next run, and a place for each result.
struct Work {
  const LifeSettings& settings;
  const CampaignOptions& options;
  std::vector<std::optional<Life>> lives;
  std::atomic<int> next{0};

  bool stopped() const { return is_set(options.interrupted); }

  void run(bool reports) {
    for (int i = next++; i < options.runs && !stopped(); i = next++) {
      const std::uint64_t seed = mixed(options.seed) + static_cast<std::uint64_t>(i);
      const Life life = live(settings, seed, options.interrupted);
      if (stopped()) return;  // the life may be unfinished
      lives[static_cast<std::size_t>(i)] = life;
      if (reports && options.progress) options.progress(static_cast<double>(i) / options.runs);
    }
  }
};

int thread_count(const CampaignOptions& options) {
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  const int wanted = options.threads > 0 ? options.threads : std::max(1, processors);
  return std::min(wanted, options.runs);
}

template <typename Value>
Quantiles quantiles_over(const std::vector<Life>& lives, Value value) {
  std::vector<double> values;
  values.reserve(lives.size());
  for (const Life& life : lives) values.push_back(static_cast<double>(value(life)));
  return quantiles_of(std::move(values));
}

double at(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = place - static_cast<double>(below);
  return sorted[below] * (1 - weight) + sorted[above] * weight;
}

}  // namespace

std::vector<Life> live_many(const LifeSettings& settings, const CampaignOptions& options) {
  Work work{settings, options, {}};
  work.lives.resize(static_cast<std::size_t>(options.runs));
  FirstException failed;
  std::vector<std::jthread> pool;
  const int threads = thread_count(options);
  for (int i = 1; i < threads; ++i) {
    if (!add_thread(pool, failed, [&work] { work.run(false); })) break;
  }
  work.run(true);
  pool.clear();
  failed.rethrow();
  std::vector<Life> lives;
  lives.reserve(work.lives.size());
  for (const std::optional<Life>& life : work.lives) {
    if (life) lives.push_back(*life);
  }
  return lives;
}

Quantiles quantiles_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return {.mean = sum / static_cast<double>(values.size()),
          .low = at(values, 0.1),
          .median = at(values, 0.5),
          .high = at(values, 0.9)};
}

bool all_ended(const LifeSettings& settings, const Campaign& campaign) {
  return settings.limit.has_value() || campaign.finished == 1;
}

Campaign summary_of(const std::vector<Life>& lives) {
  Campaign campaign;
  campaign.runs = static_cast<int>(lives.size());
  const auto wall = [](const Life& life) { return to_seconds(life.wall()).value(); };
  campaign.goodput = quantiles_over(lives, [](const Life& life) { return life.goodput(); });
  campaign.wall = quantiles_over(lives, wall);
  campaign.interruptions = quantiles_over(lives, [](const Life& l) { return l.interruptions; });
  campaign.planned = quantiles_over(lives, [](const Life& l) { return l.planned; });
  campaign.nodes_lost = quantiles_over(lives, [](const Life& l) { return l.nodes_lost; });
  campaign.checkpoints = quantiles_over(lives, [](const Life& l) { return l.checkpoints; });
  campaign.finished = quantiles_over(lives, [](const Life& l) { return l.finished; }).mean;
  for (std::size_t kind = 0; kind < kSpentKinds; ++kind) {
    const auto spent = [kind](const Life& life) {
      return to_seconds(life.spent[static_cast<Spent>(kind)]).value();
    };
    campaign.spent[kind] = Seconds(quantiles_over(lives, spent).mean);
  }
  return campaign;
}

}  // namespace trainyard
