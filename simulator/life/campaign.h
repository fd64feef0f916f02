// Many lives of the same run under different seeds, and what they have in common: means, quantiles.
// Run i has the same seed on any number of threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "simulator/life/accounting.h"
#include "simulator/life/settings.h"

namespace trainyard {

struct CampaignOptions {
  int runs = 200;
  std::uint64_t seed = 0;
  int threads = 0;                       // 0: as many as the machine has
  std::function<void(double)> progress;  // on the calling thread, with the share that is done
  const std::atomic<bool>* interrupted = nullptr;  // stop early, with the runs so far
};

// In the order of their seeds.
std::vector<Life> live_many(const LifeSettings& settings, const CampaignOptions& options);

struct Quantiles {
  double mean = 0, low = 0, median = 0, high = 0;  // 10, 50, 90 %
};
// By linear interpolation between order statistics. Requires: not empty.
Quantiles quantiles_of(std::vector<double> values);

struct Campaign {
  int runs = 0;
  double finished = 0;  // share of the runs; without a calendar the others were given up
  Quantiles goodput;    // effective training-time ratio
  Quantiles wall;       // s
  Quantiles interruptions, planned, nodes_lost, checkpoints;
  std::array<Seconds, kSpentKinds> spent{};  // mean

  Seconds of(Spent kind) const { return spent[static_cast<std::size_t>(kind)]; }
  double share(Spent kind) const { return of(kind).value() / wall.mean; }
};

// Whether every run ended, with its work or its calendar. What one takes and costs that was given
// up nobody knows.
bool all_ended(const LifeSettings& settings, const Campaign& campaign);

// Requires: not empty.
Campaign summary_of(const std::vector<Life>& lives);

}  // namespace trainyard
