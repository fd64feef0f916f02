// The split of a batch over unlike groups, compared with every split.
#include "planner/heterogeneous/batch_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

namespace trainyard {
namespace {

constexpr double kNoSplit = std::numeric_limits<double>::infinity();

// Times by micro-batches per replica, from one on; more micro-batches than entries do not fit.
struct DrawnGroup {
  int replicas = 1;
  std::vector<double> times;

  double time(int microbatches) const {
    const auto index = static_cast<std::size_t>(microbatches - 1);
    return index < times.size() ? times[index] : kNoSplit;
  }
};

double best_of_every_split(const std::vector<DrawnGroup>& groups, int microbatches) {
  double best = kNoSplit;
  const std::function<void(std::size_t, int, double)> place = [&](std::size_t g, int left,
                                                                  double latest) {
    if (g == groups.size()) {
      if (left == 0) best = std::min(best, latest);
      return;
    }
    for (int count = 1; count * groups[g].replicas <= left; ++count) {
      place(g + 1, left - count * groups[g].replicas, std::max(latest, groups[g].time(count)));
    }
  };
  place(0, microbatches, 0);
  return best;
}

std::vector<SplitGroup> as_groups(const std::vector<DrawnGroup>& drawn) {
  std::vector<SplitGroup> groups;
  groups.reserve(drawn.size());
  for (const DrawnGroup& one : drawn) {
    groups.push_back({one.replicas, [&one](int count) { return Seconds(one.time(count)); }});
  }
  return groups;
}

// Rising times, with ties, that end where memory does.
TEST(BatchSplit, EqualsTheBestOfAllSplits) {
  std::mt19937 random(3);
  const auto whole = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int found = 0, none = 0;
  for (int instance = 0; instance < 2000; ++instance) {
    std::vector<DrawnGroup> drawn(static_cast<std::size_t>(whole(1, 4)));
    for (DrawnGroup& group : drawn) {
      group.replicas = whole(1, 6);
      double time = whole(0, 5);
      for (int i = whole(0, 30); i > 0; --i) group.times.push_back(time += whole(0, 3));
    }
    const int microbatches = whole(1, 40);
    const double best = best_of_every_split(drawn, microbatches);
    const std::vector<int> split = split_batch(as_groups(drawn), microbatches);
    ASSERT_EQ(split.empty(), best == kNoSplit) << instance;
    ++(split.empty() ? none : found);
    if (split.empty()) continue;
    ASSERT_EQ(split.size(), drawn.size());
    int all = 0;
    double latest = 0;
    for (std::size_t g = 0; g < drawn.size(); ++g) {
      ASSERT_GE(split[g], 1);
      all += split[g] * drawn[g].replicas;
      latest = std::max(latest, drawn[g].time(split[g]));
    }
    ASSERT_EQ(all, microbatches) << instance;
    ASSERT_EQ(latest, best) << instance;
    // Only an earlier end is worth reporting.
    EXPECT_TRUE(split_batch(as_groups(drawn), microbatches, Seconds(best)).empty());
    EXPECT_EQ(split_batch(as_groups(drawn), microbatches, Seconds(best + 1)), split);
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(none, 500);
}

}  // namespace
}  // namespace trainyard
