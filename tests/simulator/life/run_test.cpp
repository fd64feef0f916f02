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

// A restart takes 180 s and a failure comes every 16.7 s, so one restart in e^10.8 succeeds. The
// run must be given up after about a thousand of them, not after a hundred times a month.
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
  settings.limit = Seconds(200'000);  // with a limit, a run is simulated to its end
  EXPECT_NEAR(wall(live(settings, 1)), 200'000, kNanosecond);
}

// A checkpoint every 1000 s, and a failure every 16.7 s. The work before the first failure is lost
// when the run is given up, although no restart came far enough to load anything.
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

// A restart of 15 s succeeds once in e^3 times if a failure comes every 5 s, and about 2 s of work
// without a checkpoint follow. This is slow, but takes less than a hundred times the work.
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
  EXPECT_NEAR(life.goodput() / closed, 1, 0.08);  // of 5,000 that succeed, with four intervals each
}

// Two checkpoints are done at 220 s, so a failure at 250 s loses 30 s of work and 15 s of restart.
TEST(ALife, LosesTheWorkSinceTheLastCheckpoint) {
  const Life life = live(with_trace({{.at = Seconds(250), .nodes = 1}}), 1);
  EXPECT_EQ(life.interruptions, 1);
  EXPECT_EQ(life.nodes_lost, 1);
  EXPECT_NEAR(spent(life, Spent::lost), 30, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::diagnosis), 5, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::loading), 4, kNanosecond);
  EXPECT_NEAR(wall(life), 1090 + 30 + 15, kNanosecond);
}

// At 105 s the first checkpoint is half written: the run goes back to the start, and 5 s of
// checkpoint are lost.
TEST(ALife, LosesACheckpointThatWasNotYetWritten) {
  const Life life = live(with_trace({{.at = Seconds(105), .nodes = 0}}), 1);
  EXPECT_NEAR(spent(life, Spent::lost), 100, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::checkpoint), 95, kNanosecond);
  EXPECT_NEAR(spent(life, Spent::loading), 0, kNanosecond);  // there is nothing to load
}

// A second failure comes 7 s into the restart, which then begins again: 7 + 15 s.
TEST(ALife, BeginsARestartAgainThatIsStruck) {
  const Life life =
      live(with_trace({{.at = Seconds(250), .nodes = 1}, {.at = Seconds(257), .nodes = 1}}), 1);
  EXPECT_EQ(life.interruptions, 2);
  EXPECT_NEAR(wall(life), 1090 + 30 + 7 + 15, kNanosecond);
}

// A checkpoint blocks for 1 s of copying and is written 10 s later. At 205 s (work 203) the second
// one, begun at 201 s, is not yet written, so the run goes back to work 100.
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
  // Begun at 100 s, copied at 101, written at 351; then again at 351, 602 and 853. Work 1000 is
  // reached at 1004 s.
  const Life life = live(settings, 1);
  EXPECT_EQ(life.checkpoints, 4);
  EXPECT_NEAR(wall(life), 1004, kNanosecond);
}

// With copies on two nodes, one of them may fail. If both fail, the store's older checkpoint is
// loaded.
TEST(ALife, LosesWhatLayInTheMemoryOfAllItsHolders) {
  LifeSettings settings = with_trace({{.at = Seconds(500), .nodes = 1}});
  settings.tiers = {{.write = Seconds(1), .read = Seconds(1), .every = 1, .copies = 2},
                    {.write = Seconds(10), .read = Seconds(4), .every = 3, .copies = 0}};
  // Checkpoints at work 100 (both tiers: 11 s), 200, 300 (1 s each), 400 (both): at 500 s the work
  // is 476.
  const Life one = live(settings, 1);
  EXPECT_NEAR(spent(one, Spent::lost), 76, kNanosecond);
  EXPECT_NEAR(spent(one, Spent::loading), 1, kNanosecond);
  settings.reliability.trace.front() = {.at = Seconds(400), .nodes = 2};  // work 387, of 13 s
  const Life two = live(settings, 1);
  EXPECT_NEAR(spent(two, Spent::lost), 387 - 100, kNanosecond);
  EXPECT_NEAR(spent(two, Spent::loading), 4, kNanosecond);
}

// There is no spare and the repair is far away: the time limit is reached while the job waits.
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

// One node of eight is missing without a spare. Another plan on seven nodes has 0.95 of the speed,
// so the remaining 800 s take 800/0.95. The plan for six nodes is slower than the 7/8 of shrinking.
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

// Replicas of four nodes: shrinking leaves half the speed, and another plan for seven nodes has
// more.
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

// Racks of two nodes fail far more often than devices, so every failure takes both nodes.
TEST(ALife, LosesTheNodesOfARackTogether) {
  LifeSettings settings = quiet_run();
  settings.reliability.racks = RackFailures{.nodes = 2, .mtbf = Seconds(2000)};
  settings.spares = 1000;
  const Life life = live(settings, 3);
  EXPECT_GT(life.interruptions, 0);
  EXPECT_EQ(life.nodes_lost, 2 * life.interruptions);
}

// Maintenance at 400 s and 800 s, each 50 s and a restart of 10 s without diagnosis. Work 370 at
// 400 s is saved (10 s), and the run continues at 470 s. After 280 s more with two checkpoints it
// is 800 s.
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

// A straggler is slow for 100 s until it is found. It costs at most half of that, and no work is
// lost.
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

// A corruption is found 1000 s after it began on average, 909 s of them training, and the run goes
// back to a checkpoint before it began: 959 s per interruption. If few checkpoints are kept, the
// whole run is lost.
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
