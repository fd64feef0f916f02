#include "simulator/life/failures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/simulator/life/example_run.h"

namespace trainyard {
namespace {

struct Moments {
  double mean = 0, variation = 0;  // of the intervals; variation is deviation over mean
};

Moments intervals_of(const LifeSettings& settings) {
  Failures failures(settings, 7);
  constexpr int kFailures = 100000;
  double sum = 0, squares = 0;
  Nanoseconds last{0};
  for (int i = 0; i < kFailures; ++i) {
    const Nanoseconds at = failures.take().at;
    const double interval = to_seconds(at - last).value();
    last = at;
    sum += interval;
    squares += interval * interval;
  }
  const double mean = sum / kFailures;
  return {mean, std::sqrt(squares / kFailures - mean * mean) / mean};
}

TEST(FailureTimes, AreExponentialWithTheMtbfOfAllDevices) {
  LifeSettings settings = quiet_run();
  settings.reliability.device_mtbf = Seconds(6400);
  const Moments found = intervals_of(settings);
  EXPECT_NEAR(found.mean, 100, 1);
  EXPECT_NEAR(found.variation, 1, 0.02);
}

// Weibull: the variation is √(Γ(1 + 2/k) / Γ(1 + 1/k)² − 1).
TEST(FailureTimes, AreWeibullWithTheSameMean) {
  LifeSettings settings = quiet_run();
  settings.reliability.device_mtbf = Seconds(6400);
  settings.reliability.law = FailureLaw::weibull;
  settings.reliability.weibull_shape = 0.7;
  const Moments found = intervals_of(settings);
  const double first = std::tgamma(1 + 1 / 0.7);
  EXPECT_NEAR(found.mean, 100, 1.5);
  EXPECT_NEAR(found.variation, std::sqrt(std::tgamma(1 + 2 / 0.7) / (first * first) - 1), 0.05);
}

// In steady state every stretch of time has its share of failures: 20 in 2000 s under any law, and
// one in the first 100 s. If time began at a failure, a shape of 0.5 would have 1.9 in these 100 s.
TEST(FailureTimes, AreAsManyAtTheBeginningAsLater) {
  for (const double shape : {0.5, 0.7, 3.0}) {
    LifeSettings settings = quiet_run();
    settings.reliability.device_mtbf = Seconds(6400);
    settings.reliability.law = FailureLaw::weibull;
    settings.reliability.weibull_shape = shape;
    double early = 0, all = 0;
    constexpr int kSeeds = 20000;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Failures failures(settings, seed);
      while (failures.next_at() < to_nanoseconds(Seconds(2000))) {
        early += failures.next_at() < to_nanoseconds(Seconds(100)) ? 1 : 0;
        failures.take();
        ++all;
      }
    }
    EXPECT_NEAR(early / kSeeds, 1, 0.04) << shape;
    EXPECT_NEAR(all / kSeeds, 20, 0.3) << shape;
  }
}

// Each of 8 nodes has 0.1²·0.9 runs of lost heartbeats per second.
TEST(FailureTimes, HaveFalseAlarmsOfLostHeartbeats) {
  LifeSettings settings = quiet_run();
  settings.reliability.heartbeat = {.interval = Seconds(1), .misses = 2, .loss = 0.1};
  EXPECT_NEAR(intervals_of(settings).mean, 1 / (8 * 0.009), 0.2);
}

TEST(FailureTimes, AreThoseOfATraceInstead) {
  LifeSettings settings = quiet_run();
  settings.reliability.device_mtbf = Seconds(1);
  settings.reliability.trace = {{.at = Seconds(5), .nodes = 3}, {.at = Seconds(8), .nodes = 0}};
  Failures failures(settings, 7);
  const Disturbance first = failures.take();
  EXPECT_EQ(first.at, to_nanoseconds(Seconds(5)));
  EXPECT_EQ(first.nodes, 3);
  EXPECT_EQ(failures.take().nodes, 0);
  EXPECT_EQ(failures.next_at(), kNever);
}

TEST(FailureTimes, TakeNoMoreNodesThanTheJobHas) {
  LifeSettings settings = quiet_run();
  settings.reliability.trace = {{.at = Seconds(5), .nodes = 1000}};
  EXPECT_EQ(Failures(settings, 7).take().nodes, settings.nodes);
}

TEST(FailureTimes, CostANodeInTheShareThatIsHardware) {
  LifeSettings settings = quiet_run();
  settings.reliability.device_mtbf = Seconds(6400);
  settings.reliability.hardware_share = 0.3;
  Failures failures(settings, 7);
  int nodes = 0;
  for (int i = 0; i < 100000; ++i) nodes += failures.take().nodes;
  EXPECT_NEAR(nodes, 30000, 600);
}

}  // namespace
}  // namespace trainyard
