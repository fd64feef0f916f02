#include "simulator/life/run.h"

#include <gtest/gtest.h>

#include "tests/simulator/life/example_run.h"

namespace trainyard {
namespace {

constexpr double kNanosecond = 1e-8;  // a few of them

double spent(const Life& life, Spent kind) { return to_seconds(life.spent[kind]).value(); }
double wall(const Life& life) { return to_seconds(life.wall()).value(); }

LifeSettings with_trace(std::vector<TracedFailure> trace) {
  LifeSettings settings = quiet_run();
  settings.reliability.trace = std::move(trace);
  return settings;
}

// Nine checkpoints of 10 s; the tenth would come at the end.
TEST(ALife, WithoutTroubleIsWorkAndCheckpoints) {
  const Life life = live(quiet_run(), 1);
  EXPECT_TRUE(life.finished);
  EXPECT_EQ(life.checkpoints, 9);
  EXPECT_NEAR(wall(life), 1090, kNanosecond);
}

// One attempt at a restart in e^10.8 gets through 180 s of it where a failure comes every 16.7 s:
// what shows within a thousand of them, not after a hundred times a month.
TEST(ALife, IsGivenUpOnceItIsSureToTakeAHundredTimesItsWork) {
  LifeSettings settings = quiet_run();
  settings.work = Seconds(30 * 86400.0);
  settings.spares = 1'000'000;
  settings.reliability.device_mtbf = Seconds(64 * 16.7);
  settings.reliability.restart.start = Seconds(180);
  const Life life = live(settings, 1);
  EXPECT_FALSE(life.finished);
  EXPECT_GT(life.interruptions, 900);
  EXPECT_LT(life.interruptions, 1100);
  EXPECT_LT(life.goodput(), 0.01);
  settings.limit = Seconds(200'000);  // a calendar is lived to its end
  EXPECT_NEAR(wall(live(settings, 1)), 200'000, kNanosecond);
}

// Checkpoints every 1000 s where a failure comes every 16.7 s: what is trained until the first of
// them is nobody's once the run is given up, although no restart came so far as to load anything.
TEST(ALife, LosesWhatWasNotSavedWhenItIsGivenUp) {
  LifeSettings settings = quiet_run();
  settings.work = Seconds(30 * 86400.0);
  settings.interval = Seconds(1000);
  settings.reliability.device_mtbf = Seconds(64 * 16.7);
  settings.reliability.restart.diagnose = Seconds(1e6);
  const Life life = live(settings, 1);
  EXPECT_EQ(life.checkpoints, 0);
  EXPECT_EQ(life.goodput(), 0);
  EXPECT_GT(life.spent[Spent::lost], Nanoseconds(0));
}

// A restart of 15 s gets through once in e^3 times where a failure comes every 5 s, 2 s of work
// after it without a checkpoint on average: slow, but within a hundred times its work.
TEST(ALife, IsNotGivenUpWhileItGetsOn) {
  LifeSettings settings = quiet_run();
  settings.work = Seconds(20'000);
  settings.spares = 1'000'000;
  settings.interval = Seconds(1);
  settings.tiers[0].write = Seconds(0.1);
  settings.copy = Seconds(0.1);
  settings.reliability.device_mtbf = Seconds(64 * 5.0);
  const Life life = live(settings, 1);
  EXPECT_TRUE(life.finished);
  EXPECT_GT(life.interruptions, 10'000);
  const double closed = goodput({.interval = Seconds(1),
                                 .checkpoint = Seconds(0.1),
                                 .restart = Seconds(15),
                                 .mtbf = Seconds(5)});
  EXPECT_NEAR(life.goodput() / closed, 1, 0.08);  // of 5,000 that get through, each four intervals
}

// Two checkpoints are done at 220 s, so that a failure at 250 s loses 30 s and 15 s of restart.
TEST(ALife, LosesTheWorkSinceTheLastCheckpoint) {
  const Life life = live(with_trace({{.at = Seconds(250), .nodes = 1}}), 1);
  EXPECT_EQ(life.interruptions, 1);
  EXPECT_EQ(life.nodes_lost, 1);
  EXPECT_NEAR(spent(life, Spent::lost), 30, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::diagnosis), 5, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::loading), 4, kNanosecond);
  EXPECT_NEAR(wall(life), 1090 + 30 + 15, kNanosecond);
}

// At 105 s the first checkpoint is half written: back to the start, its 5 s for nothing.
TEST(ALife, LosesACheckpointThatWasNotYetWritten) {
  const Life life = live(with_trace({{.at = Seconds(105), .nodes = 0}}), 1);
  EXPECT_NEAR(spent(life, Spent::lost), 100, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::checkpoint), 95, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::loading), 0, kNanosecond);  // there is nothing to load
}

// Struck again 7 s into the restart, which then begins again: 7 + 15.
TEST(ALife, BeginsARestartAgainThatIsStruck) {
  const Life life =
      live(with_trace({{.at = Seconds(250), .nodes = 1}, {.at = Seconds(257), .nodes = 1}}), 1);
  EXPECT_EQ(life.interruptions, 2);
  EXPECT_NEAR(wall(life), 1090 + 30 + 7 + 15, kNanosecond);
}

// The copy blocks for 1 s; written 10 s later. At 205 s (work 203) the second, begun at 201 s, is
// not yet written: back to 100.
TEST(ALife, LoadsTheLastCheckpointWhoseBackgroundWriteIsDone) {
  LifeSettings settings = with_trace({{.at = Seconds(205), .nodes = 0}});
  settings.mode = CheckpointMode::asynchronous;
  const Life life = live(settings, 1);
  EXPECT_NEAR(spent(life, Spent::lost), 203 - 100, kNanosecond);
}

TEST(ALife, WaitsForTheStoreBeforeTheNextCheckpoint) {
  LifeSettings settings = quiet_run();
  settings.mode = CheckpointMode::asynchronous;
  settings.tiers.front().write = Seconds(250);
  // Begun at 100, copied at 101, written at 351: again at 351 and 602, 853; work 1000 at 1004.
  const Life life = live(settings, 1);
  EXPECT_EQ(life.checkpoints, 4);
  EXPECT_NEAR(wall(life), 1004, kNanosecond);
}

// With copies on two nodes one may fail, not two: then the store's older checkpoint is loaded.
TEST(ALife, LosesWhatLayInTheMemoryOfAllItsHolders) {
  LifeSettings settings = with_trace({{.at = Seconds(500), .nodes = 1}});
  settings.tiers = {{.write = Seconds(1), .read = Seconds(1), .every = 1, .copies = 2},
                    {.write = Seconds(10), .read = Seconds(4), .every = 3, .copies = 0}};
  // Checkpoints at work 100 (both: 11 s), 200, 300 (1 s), 400 (both): at 500 s the work is 476.
  const Life one = live(settings, 1);
  EXPECT_NEAR(spent(one, Spent::lost), 76, kNanosecond);
  EXPECT_NEAR(spent(one, Spent::loading), 1, kNanosecond);
  settings.reliability.trace.front() = {.at = Seconds(400), .nodes = 2};  // work 387, of 13 s
  const Life two = live(settings, 1);
  EXPECT_NEAR(spent(two, Spent::lost), 387 - 100, kNanosecond);
  EXPECT_NEAR(spent(two, Spent::loading), 4, kNanosecond);
}

// No spare, a repair far away: the calendar ends while the job waits.
TEST(ALife, WaitsForARepairWithoutASpare) {
  LifeSettings settings = with_trace({{.at = Seconds(250), .nodes = 1}});
  settings.spares = 0;
  settings.limit = Seconds(2000);
  const Life life = live(settings, 1);
  EXPECT_FALSE(life.finished);
  EXPECT_NEAR(wall(life), 2000, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::waiting), 2000 - 255, kNanosecond);
}

// Seven of eight replicas do the remaining 800 s in 800 · 8/7; 800/7 s of it are degraded.
TEST(ALife, GoesOnWithFewerReplicasWhereItMayShrink) {
  LifeSettings settings = with_trace({{.at = Seconds(250), .nodes = 1}});
  settings.spares = 0;
  settings.reliability.elastic = ElasticPolicy::shrink;
  const Life life = live(settings, 1);
  EXPECT_TRUE(life.finished);
  EXPECT_NEAR(spent(life, Spent::degraded), 800.0 / 7, 1e-6);
  EXPECT_NEAR(wall(life), 1090 + 30 + 15 + 800.0 / 7, 1e-6);
}

// Without a spare one node of eight is missing. Another plan on seven does 0.95 of the speed: the
// remaining 800 s take 800/0.95. A plan for six is no use to better than 7/8.
TEST(ALife, GoesOnWithAnotherPlanWhereThatIsFaster) {
  LifeSettings settings = with_trace({{.at = Seconds(250), .nodes = 1}});
  settings.spares = 0;
  settings.reliability.elastic = ElasticPolicy::replan;
  settings.replans = {{.nodes = 6, .speed = 0.7}, {.nodes = 7, .speed = 0.95}};
  const Life life = live(settings, 1);
  EXPECT_NEAR(wall(life), 1090 + 30 + 15 + 800 / 0.95 - 800, 1e-6);
  settings.replans.pop_back();
  EXPECT_NEAR(wall(live(settings, 1)), 1090 + 30 + 15 + 800.0 / 7, 1e-6);
}

// Replicas of four nodes: shrinking leaves half the speed, another plan for seven nodes more.
TEST(SpeedWithoutNodes, IsThatOfTheBestPlanThatIsLeft) {
  LifeSettings settings = quiet_run();
  settings.replicas = 2;
  settings.replans = {{.nodes = 4, .speed = 0.55}, {.nodes = 7, .speed = 0.9}};
  EXPECT_EQ(speed_without(settings, 0), 1);
  EXPECT_EQ(speed_without(settings, 1), 0);  // it waits
  settings.reliability.elastic = ElasticPolicy::shrink;
  settings.replans.clear();
  EXPECT_EQ(speed_without(settings, 1), 0.5);
  EXPECT_EQ(speed_without(settings, 5), 0);
  settings.reliability.elastic = ElasticPolicy::replan;
  settings.replans = {{.nodes = 4, .speed = 0.55}, {.nodes = 7, .speed = 0.9}};
  EXPECT_EQ(speed_without(settings, 1), 0.9);
  EXPECT_EQ(speed_without(settings, 2), 0.55);
  EXPECT_EQ(speed_without(settings, 5), 0);
}

// A rack of two nodes, far more often than devices: every failure takes both.
TEST(ALife, LosesTheNodesOfARackTogether) {
  LifeSettings settings = quiet_run();
  settings.reliability.racks = RackFailures{.nodes = 2, .mtbf = Seconds(2000)};
  settings.spares = 1000;
  const Life life = live(settings, 3);
  EXPECT_GT(life.interruptions, 0);
  EXPECT_EQ(life.nodes_lost, 2 * life.interruptions);
}

// Windows at 400 s and 800 s, each of 50 s and a restart of 10 s without a diagnosis: work 370 at
// 400 s is saved (10 s) and goes on at 470 s; 280 s with two checkpoints later it is 800 s.
TEST(ALife, LosesNoWorkToMaintenance) {
  LifeSettings settings = quiet_run();
  settings.reliability.maintenance = Maintenance{.every = Seconds(400), .duration = Seconds(50)};
  settings.limit = Seconds(900);
  const Life life = live(settings, 1);
  EXPECT_EQ(life.planned, 2);
  EXPECT_EQ(life.interruptions, 0);
  EXPECT_NEAR(spent(life, Spent::lost), 0, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::maintenance), 100, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::diagnosis), 0, kNanosecond);
}

// Slow for 100 s at a time: each straggler costs at most half of that, and work is never lost.
TEST(ALife, EvictsStragglersWithoutLosingWork) {
  LifeSettings settings = quiet_run();
  settings.spares = 1000;
  settings.reliability.stragglers =
      Stragglers{.mtbf = Seconds(64 * 300.0), .speed = 0.5, .detection = Seconds(100)};
  const Life life = live(settings, 5);
  EXPECT_GT(life.planned, 0);
  EXPECT_EQ(life.nodes_lost, life.planned);
  EXPECT_NEAR(spent(life, Spent::lost), 0, kNanosecond);
  EXPECT_GT(spent(life, Spent::degraded), 0);
  EXPECT_LE(spent(life, Spent::degraded), 50.0 * static_cast<double>(life.planned + 1) + 1e-6);
}

// Found 1000 s after it began on average, 909 of them training, and then back to a checkpoint
// before that: 959 s an interruption. With few checkpoints kept it costs the whole run.
TEST(ALife, GoesBackBeyondASilentCorruption) {
  LifeSettings settings = quiet_run();
  settings.work = Seconds(2e6);
  settings.spares = 1000;
  settings.reliability.silent =
      SilentCorruption{.mtbf = Seconds(64 * 20000.0), .detection = Seconds(1000)};
  settings.limit = Seconds(5e6);
  const Life all = live(settings, 1);
  ASSERT_TRUE(all.finished);
  ASSERT_GT(all.interruptions, 70);
  EXPECT_NEAR(spent(all, Spent::lost) / static_cast<double>(all.interruptions), 959, 330);
  settings.keep = 1;
  EXPECT_GT(spent(live(settings, 1), Spent::lost), 2 * spent(all, Spent::lost));
}

TEST(ALife, EndsWhereItIsInterrupted) {
  const std::atomic<bool> interrupted = true;
  const Life life = live(quiet_run(), 1, &interrupted);
  EXPECT_FALSE(life.finished);
  EXPECT_EQ(life.wall(), Nanoseconds(0));
}

TEST(ALife, IsBookedToTheNanosecond) {
  LifeSettings settings = quiet_run();
  settings.work = Seconds(20000);
  settings.limit = Seconds(1e6);
  settings.reliability.device_mtbf = Seconds(64 * 700.0);
  settings.reliability.repair = Seconds(3000);
  settings.reliability.elastic = ElasticPolicy::shrink;
  settings.reliability.stragglers = Stragglers{.mtbf = Seconds(64 * 3000.0)};
  settings.spares = 1;
  const Life life = live(settings, 9);
  ASSERT_TRUE(life.finished);
  EXPECT_EQ(life.spent[Spent::useful], Nanoseconds(20'000'000'000'000));
  EXPECT_GT(life.spent[Spent::degraded], Nanoseconds(0));
  const Life again = live(settings, 9);
  EXPECT_EQ(life.wall(), again.wall());
  EXPECT_NE(life.wall(), live(settings, 10).wall());
}

}  // namespace
}  // namespace trainyard
