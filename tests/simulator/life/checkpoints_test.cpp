#include "simulator/life/checkpoints.h"

#include <gtest/gtest.h>

#include "tests/simulator/life/example_run.h"

namespace trainyard {
namespace {

Nanoseconds at(double seconds) { return to_nanoseconds(Seconds(seconds)); }

// A full one of 10 s, then two increments of a fifth; reading the last takes 4 · (1 + 2/5) s.
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

// An interrupted chain begins again with a full one.
TEST(CheckpointStore, WritesAFullOneAfterAFailure) {
  LifeSettings settings = quiet_run();
  settings.incremental = Incremental{.full_every = 3, .share = 0.2};
  Checkpoints checkpoints(settings, 1);
  checkpoints.put(at(100), at(100));
  checkpoints.drop_unwritten(at(150));
  EXPECT_EQ(checkpoints.blocking(at(160)), at(10));
}

// Of two kept, work 300 and 200; a corruption from work 150 on leaves nothing.
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

// Every other checkpoint is bad: on average one load in vain (1/2 + 1/4 + …) of 4 + 2 s.
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
