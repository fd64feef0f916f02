#include "simulator/life/checkpoints.h"

#include <gtest/gtest.h>

#include "tests/simulator/life/example_run.h"

namespace trainyard {
namespace {

Nanoseconds at(double seconds) { return to_nanoseconds(Seconds(seconds)); }

// A full checkpoint of 10 s, then two increments of a fifth. Reading the last one takes 4·(1 + 2/5)
// s.
TEST(CheckpointStore, WritesIncrementsBetweenFullOnesAndReadsThemAll) {
  LifeSettings settings = quiet_run();
  settings.incremental = Incremental{.full_every = 3, .share = 0.2};
  Checkpoints checkpoints(settings, 1);
  for (const double expected : {10.0, 2.0, 2.0, 10.0}) {
    EXPECT_EQ(checkpoints.blocking(at(0)), at(expected));
    checkpoints.put(at(100), at(0));
  }
  Checkpoints three(settings, 1);
  for (const double work : {100.0, 200.0, 300.0}) three.put(at(work), at(work));
  EXPECT_NEAR(to_seconds(three.load().time).value(), 5.6, 1e-8);
}

// After a failure a chain of increments starts again with a full checkpoint.
TEST(CheckpointStore, WritesAFullOneAfterAFailure) {
  LifeSettings settings = quiet_run();
  settings.incremental = Incremental{.full_every = 3, .share = 0.2};
  Checkpoints checkpoints(settings, 1);
  checkpoints.put(at(100), at(100));
  checkpoints.drop_unwritten(at(150));
  EXPECT_EQ(checkpoints.blocking(at(160)), at(10));
}

// No increment is added to a checkpoint that was lost with its nodes or that validation refused.
TEST(CheckpointStore, WritesAFullOneWhereNothingIsLeftToAddTo) {
  LifeSettings settings = quiet_run();
  settings.incremental = Incremental{.full_every = 3, .share = 0.2};
  settings.tiers.front().copies = 2;
  Checkpoints lost(settings, 1);
  lost.put(at(100), at(100));
  lost.lose_nodes(2);
  EXPECT_EQ(lost.blocking(at(160)), at(10));
  settings.load_failure = 1;
  Checkpoints refused(settings, 1);
  refused.put(at(100), at(100));
  EXPECT_EQ(refused.load().work, at(0));
  EXPECT_EQ(refused.blocking(at(160)), at(10));
}

// The second tier, which takes 1 s, gets the first, third and fifth checkpoint: full, an increment,
// full.
TEST(CheckpointStore, CountsTheIncrementsThatATierWrote) {
  LifeSettings settings = quiet_run();
  settings.incremental = Incremental{.full_every = 2, .share = 0.2};
  settings.tiers.push_back({.write = Seconds(1), .read = Seconds(1), .every = 2});
  Checkpoints checkpoints(settings, 1);
  for (const double expected : {11.0, 2.0, 10.2, 2.0, 11.0}) {
    EXPECT_EQ(checkpoints.blocking(at(0)), at(expected));
    checkpoints.put(at(100), at(0));
  }
}

// The fifth checkpoint is the tier's third: it is read after a full one and an increment, 1·(1 +
// 2/5) s.
TEST(CheckpointStore, ReadsTheIncrementsThatATierWrote) {
  LifeSettings settings = quiet_run();
  settings.incremental = Incremental{.full_every = 3, .share = 0.2};
  settings.tiers.push_back({.write = Seconds(1), .read = Seconds(1), .every = 2});
  Checkpoints checkpoints(settings, 1);
  for (const double work : {100.0, 200.0, 300.0, 400.0, 500.0}) checkpoints.put(at(work), at(work));
  const Checkpoints::Loaded loaded = checkpoints.load();
  EXPECT_EQ(loaded.work, at(500));
  EXPECT_NEAR(to_seconds(loaded.time).value(), 1.4, 1e-8);
}

// The kept checkpoints of work 300 and 200 both need the full one of work 100; those of 500 and 400
// need the full one of work 400.
TEST(CheckpointStore, KeepsTheFullOneThatKeptIncrementsNeed) {
  LifeSettings settings = quiet_run();
  settings.keep = 1;
  settings.incremental = Incremental{.full_every = 3, .share = 0.2};
  Checkpoints checkpoints(settings, 1);
  for (const double work : {100.0, 200.0, 300.0}) checkpoints.put(at(work), at(work));
  Checkpoints later = checkpoints;
  checkpoints.drop_after(at(150));
  const Checkpoints::Loaded loaded = checkpoints.load();
  EXPECT_EQ(loaded.work, at(100));
  EXPECT_EQ(loaded.time, at(4));
  for (const double work : {400.0, 500.0}) later.put(at(work), at(work));
  later.drop_after(at(350));
  EXPECT_EQ(later.load().work, at(0));
}

// Two are kept, of work 300 and 200, so a corruption since work 150 leaves nothing.
TEST(CheckpointStore, KeepsNoMoreThanItShould) {
  LifeSettings settings = quiet_run();
  settings.keep = 1;
  Checkpoints checkpoints(settings, 1);
  for (const double work : {100.0, 200.0, 300.0}) checkpoints.put(at(work), at(work));
  checkpoints.drop_after(at(150));
  EXPECT_EQ(checkpoints.load().work, at(0));
}

TEST(CheckpointStore, LoadsFromTheFastestTierThatHasTheNewest) {
  LifeSettings settings = quiet_run();
  settings.tiers.push_back({.write = Seconds(1), .read = Seconds(1), .every = 2, .copies = 2});
  Checkpoints checkpoints(settings, 1);
  checkpoints.put(at(100), at(100));
  EXPECT_EQ(checkpoints.load().time, at(1));
  checkpoints.put(at(200), at(200));
  EXPECT_EQ(checkpoints.load().work, at(200));
  EXPECT_EQ(checkpoints.load().time, at(4));
}

// Every second checkpoint is bad: on average one load of 4 + 2 s is in vain (1/2 + 1/4 + …).
TEST(CheckpointStore, FallsBackWhenValidationRefuses) {
  LifeSettings settings = quiet_run();
  settings.load_failure = 0.5;
  settings.validation = Seconds(2);
  Checkpoints checkpoints(settings, 1);
  for (int i = 1; i <= 40000; ++i) checkpoints.put(at(i), at(i));
  double time = 0;
  constexpr int kLoads = 10000;
  for (int i = 0; i < kLoads; ++i) time += to_seconds(checkpoints.load().time).value();
  EXPECT_NEAR(time / kLoads, 12, 0.3);
}

}  // namespace
}  // namespace trainyard
