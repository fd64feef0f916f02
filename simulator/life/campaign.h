// Simulates many lives of the same run with different seeds, and summarises them: means, quantiles.
// Life i has the same seed on any number of threads.
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
  int threads = 0;                       // 0: one for each processor of the machine
  std::function<void(double)> progress;  // called on the calling thread with the share that is done
  const std::atomic<bool>* interrupted = nullptr;  // stop early, with the runs so far
};

// The lives in the order of their seeds; only the finished ones where it was interrupted.
std::vector<Life> live_many(const LifeSettings& settings, const CampaignOptions& options);

struct Quantiles {
  double mean = 0, low = 0, median = 0, high = 0;  // low, median, high: the 10, 50, 90 % quantiles
};
// Quantiles by linear interpolation between order statistics. Requires: not empty.
Quantiles quantiles_of(std::vector<double> values);

struct Campaign {
  int runs = 0;
  double finished = 0;  // share of the runs; without a calendar the rest was given up
  Quantiles goodput;    // effective training-time ratio
  Quantiles wall;       // s
  Quantiles interruptions, planned, nodes_lost, checkpoints;
  std::array<Seconds, kSpentKinds> spent{};  // mean of the runs

  Seconds of(Spent kind) const { return spent[static_cast<std::size_t>(kind)]; }
  double share(Spent kind) const { return of(kind).value() / wall.mean; }
};

// Whether every run came to its end: its work done or its calendar over. How long a run that was
// given up would take, and what it would cost, is not known.
bool all_ended(const LifeSettings& settings, const Campaign& campaign);

// Requires: not empty.
Campaign summary_of(const std::vector<Life>& lives);

}  // namespace trainyard
