#include "simulator/life/campaign.h"

#include <gtest/gtest.h>

#include "simulator/life/run.h"
#include "tests/simulator/life/example_run.h"

namespace trainyard {
namespace {

LifeSettings troubled_run() {
  LifeSettings settings = quiet_run();
  settings.work = Seconds(50000);
  settings.reliability.device_mtbf = Seconds(64 * 1000.0);
  settings.reliability.repair = Seconds(5000);
  return settings;
}

TEST(ManyLives, AreTheSameOnAnyNumberOfThreads) {
  CampaignOptions one{.runs = 50, .seed = 3, .threads = 1};
  CampaignOptions three{.runs = 50, .seed = 3, .threads = 3};
  const auto expected = live_many(troubled_run(), one);
  const auto found = live_many(troubled_run(), three);
  ASSERT_EQ(found.size(), 50U);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].wall(), expected[i].wall());
}

TEST(ManyLives, DifferBySeed) {
  const auto some = live_many(troubled_run(), {.runs = 2, .seed = 1});
  EXPECT_NE(some[0].wall(), some[1].wall());
  EXPECT_NE(live_many(troubled_run(), {.runs = 1, .seed = 2})[0].wall(), some[0].wall());
}

TEST(ManyLives, EndEarlyWhenInterrupted) {
  const std::atomic<bool> interrupted = true;
  CampaignOptions options{.runs = 50};
  options.interrupted = &interrupted;
  EXPECT_TRUE(live_many(troubled_run(), options).empty());
}

// 1000 s of work with a checkpoint every 100 s, and one failure of 64 devices per 1000 s. A run is
// given up after a hundred times its work, hence at most 100 failures.
TEST(ExpectedEvents, AreCheckpointsAndFailures) {
  LifeSettings settings = quiet_run();
  settings.reliability.device_mtbf = Seconds(64 * 1000.0);
  EXPECT_DOUBLE_EQ(expected_events(settings), 10 + 100);
  settings.limit = Seconds(500);
  EXPECT_DOUBLE_EQ(expected_events(settings), 5 + 0.5);
}

TEST(Quantiles, AreInterpolatedBetweenOrderStatistics) {
  const Quantiles found = quantiles_of({5, 1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(found.mean, 3);
  EXPECT_DOUBLE_EQ(found.low, 1.4);
  EXPECT_DOUBLE_EQ(found.median, 3);
  EXPECT_DOUBLE_EQ(found.high, 4.6);
}

TEST(Summaries, HavePartsThatSumToTheWholeTime) {
  const Campaign campaign = summary_of(live_many(troubled_run(), {.runs = 20}));
  double sum = 0;
  for (const Seconds part : campaign.spent) sum += part.value();
  EXPECT_NEAR(sum, campaign.wall.mean, 1e-6 * sum);
  EXPECT_DOUBLE_EQ(campaign.finished, 1);
}

}  // namespace
}  // namespace trainyard
