// Compares the simulation of runs with the closed forms of handbook §10, where these hold, and with
// what was published about Llama 3.
#include <gtest/gtest.h>

#include "simulator/life/campaign.h"
#include "simulator/life/tuning.h"
#include "tests/simulator/life/example_run.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

constexpr Seconds kLlamaMtbf = 54.0 / 419 * kDay;
constexpr Seconds kRestart{600};  // all of it in one phase

// Exponential failures that cost no node, and a checkpoint of `checkpoint` s every `interval` s.
LifeSettings exponential_run(double interval, double checkpoint) {
  LifeSettings settings = quiet_run();
  settings.work = 60 * kDay;
  settings.interval = Seconds(interval);
  settings.tiers.front() = {.write = Seconds(checkpoint), .read = Seconds(0)};
  settings.reliability.device_mtbf = 64 * kLlamaMtbf;
  settings.reliability.hardware_share = 0;
  settings.reliability.restart = {Seconds(0), Seconds(0), Seconds(0), kRestart};
  return settings;
}

struct Case {
  double interval, checkpoint;
};
class WallTimes : public ::testing::TestWithParam<Case> {};

TEST_P(WallTimes, AreDalysToOnePercent) {
  const auto [interval, checkpoint] = GetParam();
  const Campaign campaign =
      summary_of(live_many(exponential_run(interval, checkpoint), {.runs = random_cases(200)}));
  const Seconds expected = 60 * kDay /
                           goodput({.interval = Seconds(interval),
                                    .checkpoint = Seconds(checkpoint),
                                    .restart = kRestart,
                                    .mtbf = kLlamaMtbf});
  EXPECT_NEAR(campaign.wall.mean / expected.value(), 1, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Intervals, WallTimes,
                         ::testing::Values(Case{300, 60}, Case{1116.3, 60}, Case{5000, 60},
                                           Case{20000, 60}, Case{2000, 600}, Case{100, 1}));

// The search's grid has steps of 2^(1/4); between two steps the goodput is flat.
TEST(TheBestInterval, LiesAtDalysWhenFoundBySimulation) {
  const BestInterval best =
      best_interval(exponential_run(1600, 60), Seconds(1600), {.runs = random_cases(100)}).value();
  EXPECT_NEAR(best.interval.value() / 1116.3, 1, 0.3);
  const double at_dalys = goodput({Seconds(1116.3), Seconds(60), kRestart, kLlamaMtbf});
  EXPECT_NEAR(best.goodput / at_dalys, 1, 0.01);
}

// The search finds Daly's interval although it begins a factor of 16 away and the run's own
// interval is 13 times as long.
TEST(TheBestInterval, IsFoundFarFromWhereTheSearchBegins) {
  for (const double around : {1116.3 / 16, 1116.3 * 16}) {
    const auto best =
        best_interval(exponential_run(4 * 3600, 60), Seconds(around), {.runs = random_cases(40)});
    EXPECT_NEAR(best.value().interval.value() / 1116.3, 1, 0.3) << around;
    EXPECT_LT(best->goodput_of_taken, best->goodput) << around;
  }
}

TEST(TheBestInterval, IsThatOfTheRunWhereNoOtherIsBetter) {
  LifeSettings settings = quiet_run();  // of 1000 s that nothing strikes: no checkpoint is best
  settings.interval = 2 * settings.work;
  const BestInterval best = best_interval(settings, Seconds(10), {.runs = 1}).value();
  EXPECT_EQ(best.interval, settings.interval);
  EXPECT_EQ(best.goodput_of_taken, best.goodput);
}

TEST(TheBestInterval, IsNotShorterThanAStep) {
  LifeSettings settings = exponential_run(1600, 60);
  settings.step = Seconds(2000);
  settings.interval = settings.step;
  EXPECT_GE(best_interval(settings, Seconds(1600), {.runs = 5}).value().interval, settings.step);
}

// A failure every second and restarts of ten minutes: no work is ever done.
TEST(TheBestChoices, AreNotSaidWhereNoneGetsAnywhere) {
  LifeSettings settings = exponential_run(1600, 60);
  settings.reliability.device_mtbf = Seconds(64);
  EXPECT_FALSE(best_interval(settings, Seconds(1600), {.runs = 2}).has_value());
  EXPECT_FALSE(best_spares(settings, {.runs = 2}).has_value());
}

TEST(TheBestChoices, AreNotSaidAfterAnInterruption) {
  const std::atomic<bool> interrupted = true;
  CampaignOptions options{.runs = 5};
  options.interrupted = &interrupted;
  EXPECT_FALSE(best_interval(exponential_run(1600, 60), Seconds(1600), options).has_value());
  EXPECT_FALSE(best_spares(exponential_run(1600, 60), options).has_value());
}

// An asynchronous checkpoint blocks for 1 s and can be loaded 30 s later, so those 30 s are lost
// too.
TEST(AsynchronousCheckpoints, LoseWhatIsTrainedDuringTheirWriting) {
  LifeSettings settings = exponential_run(300, 30);
  settings.mode = CheckpointMode::asynchronous;
  settings.copy = Seconds(1);
  const Campaign campaign = summary_of(live_many(settings, {.runs = random_cases(200)}));
  const double expected = goodput({Seconds(300), Seconds(1), kRestart + Seconds(30), kLlamaMtbf});
  EXPECT_NEAR(campaign.goodput.mean / expected, 1, 0.01);
}

// Llama Team 2024 (arXiv 2407.21783), §3.3.4 and Table 5: 54 days on 16,384 GPUs, 419 unexpected
// and 47 planned interruptions, more than 90 % effective training time. Checkpoints of 14 bytes per
// parameter go to a store of 2 TB/s; the cluster has 24,000 GPUs, so there are always spares. The
// length of a planned stop was not published: with the 10 minutes assumed here the published share
// is reached; with an hour it would be 89.5 %.
TEST(LlamaThree, HasTheInterruptionsAndTheEffectiveTimeThatWerePublished) {
  LifeSettings settings;
  settings.work = 100 * kDay;
  settings.limit = 54 * kDay;
  settings.devices = 16384;
  settings.nodes = 2048;
  settings.devices_per_node = 8;
  settings.replicas = 128;
  settings.spares = 952;
  const Seconds written(14 * 405.853e9 / 2e12);
  settings.tiers = {{.write = written, .read = written}};
  settings.mode = CheckpointMode::synchronous;
  settings.interval = daly_interval(written, kLlamaMtbf);
  settings.reliability.maintenance =
      Maintenance{.every = 54.0 / 47.5 * kDay, .duration = 10 * kMinute};
  const Campaign campaign = summary_of(live_many(settings, {.runs = 100}));
  EXPECT_NEAR(campaign.interruptions.mean / 419, 1, 0.02);
  EXPECT_NEAR(campaign.planned.mean, 47, 1);
  EXPECT_GT(campaign.goodput.mean, 0.9);
  EXPECT_LT(campaign.goodput.mean, 0.95);
}

// Without spares the job waits a day for every lost node, so having no spares is the worst choice.
TEST(TheBestSpares, AreThoseThatRepairsKeepBusy) {
  LifeSettings settings = exponential_run(1116, 60);
  settings.reliability.hardware_share = 1;
  settings.reliability.repair = kDay;
  settings.nodes = 800;
  settings.devices = 800 * 8;
  settings.replicas = 800;
  settings.reliability.device_mtbf = 6400 * kLlamaMtbf;
  settings.limit = 60 * kDay;
  // 7.8 nodes are in repair on average (Poisson), so 16 spares suffice in all but 0.3 % of the
  // time.
  const BestSpares best = best_spares(settings, {.runs = 20}).value();
  EXPECT_GE(best.spares, 8);
  EXPECT_LE(best.spares, 24);
}

// Four nodes; one node fails per day and takes eight days to repair, so eight are in repair on
// average (Poisson). The job runs in P(≤ 8) = 0.593 of the time with 8 spares, 0.936 with 12 and
// 0.996 with 16. Per node paid (12, 16 and 20) that is 4.9 %, 5.9 % and 5.0 %. With no spare it
// runs in 0.03 % of the time, with one in 0.3 %.
TEST(TheBestSpares, AreMoreThanNodesWhereAsManyAreInRepair) {
  LifeSettings settings = exponential_run(1116, 60);
  settings.reliability.hardware_share = 1;
  settings.reliability.repair = 8 * kDay;
  settings.nodes = 4;
  settings.devices = 32;
  settings.replicas = 4;
  settings.spares = 0;
  settings.reliability.device_mtbf = 32 * kDay;
  settings.work = 400 * kDay;  // long against a repair: none is needed at first
  settings.limit = settings.work;
  EXPECT_EQ(best_spares(settings, {.runs = 20}).value().spares, 12);
}

// Five nodes fail in the first second and are never repaired. The search's ladder has 4 and 6
// spares, so 5 can only come from the number that the run holds.
TEST(TheBestSpares, MayBeThoseThatAreHeld) {
  LifeSettings settings = quiet_run();
  settings.reliability.trace = {{.at = Seconds(1), .nodes = 5}};
  settings.limit = Seconds(1200);
  settings.spares = 5;
  EXPECT_EQ(best_spares(settings, {.runs = 1}).value().spares, 5);
  settings.spares = 8;
  EXPECT_EQ(best_spares(settings, {.runs = 1}).value().spares, 6);
}

}  // namespace
}  // namespace trainyard
