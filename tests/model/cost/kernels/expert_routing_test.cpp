#include "model/cost/kernels/expert_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace trainyard {
namespace {

struct Simulated {
  double busiest = 0;  // median over draws
  double active = 0;   // mean share of experts with a token
};

// Simulates the routing as the tables' authors did: draw popularities by inverting the
// distribution, round them to tokens, take the busiest rank.
Simulated simulated(const Routing& routing, int ranks) {
  constexpr int kDraws = 2000;
  std::mt19937_64 bits(1);
  const double copies = routing.tokens * routing.experts_per_token;
  const double q = 1 - routing.exponent;
  const double most = std::pow(0.8 * routing.tokens, q);
  std::vector<double> busiest;
  double active = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> popularity(static_cast<std::size_t>(routing.experts));
    for (double& x : popularity) {
      x = std::pow(1 + (most - 1) * static_cast<double>(bits() >> 11) * 0x1p-53, 1 / q);
    }
    const double total = std::accumulate(popularity.begin(), popularity.end(), 0.0);
    std::vector<double> load(static_cast<std::size_t>(ranks));
    const std::size_t local = popularity.size() / load.size();
    for (std::size_t i = 0; i < popularity.size(); ++i) {
      load[i / local] += popularity[i];
      active += std::round(popularity[i] / total * copies) > 0 ? 1.0 / routing.experts : 0.0;
    }
    busiest.push_back(*std::ranges::max_element(load) / total * ranks);
  }
  std::ranges::nth_element(busiest, busiest.begin() + kDraws / 2);
  return {busiest[kDraws / 2], active / kDraws};
}

TEST(ExpertRouting, HasTheBusiestRankOfASimulationOfManyExpertsARank) {
  for (const double exponent : {1.01, 1.2}) {
    for (const int ranks : {2, 8}) {
      const Routing routing{8192, 8, 128, exponent};
      const double expected = simulated(routing, ranks).busiest;
      EXPECT_NEAR(busiest_over_mean(routing, ranks) / expected, 1, 0.05)
          << exponent << ' ' << ranks;
    }
    const Routing wide{8192, 22, 512, exponent};
    EXPECT_NEAR(busiest_over_mean(wide, 32) / simulated(wide, 32).busiest, 1, 0.05);
  }
}

TEST(ExpertRouting, IsWithinAThirdOfASimulationOfAnExpertARank) {
  const Routing routing{8192, 8, 128, 1.01};
  EXPECT_NEAR(busiest_over_mean(routing, 128) / simulated(routing, 128).busiest, 1, 1.0 / 3);
}

TEST(ExpertRouting, LeavesAsManyExpertsIdleAsASimulation) {
  for (const double exponent : {1.01, 1.2}) {
    const Routing few{8192, 1, 128, exponent};
    EXPECT_NEAR(active_share(few), simulated(few, 2).active, 0.03);
    EXPECT_LT(active_share(few), 0.9);
  }
}

TEST(ExpertRouting, IsEvenWithoutAPowerLawAndOnOneRank) {
  EXPECT_EQ(busiest_over_mean({8192, 8, 128, 0}, 64), 1);
  EXPECT_EQ(busiest_over_mean({8192, 8, 128, 1.2}, 1), 1);
  EXPECT_EQ(active_share({8192, 1, 128, 0}), 1);
}

// The busiest rank cannot have more than all tokens, nor less than the mean.
TEST(ExpertRouting, StaysBetweenTheMeanAndEverything) {
  for (const double exponent : {0.5, 1.0, 1.01, 1.2, 2.0}) {
    for (const int ranks : {2, 4, 8, 64, 256}) {
      for (const double tokens : {1.0, 64.0, 1e6}) {
        const double busiest = busiest_over_mean({tokens, 2, 256, exponent}, ranks);
        EXPECT_GE(busiest, 1);
        EXPECT_LE(busiest, ranks);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
