// Times are exact up to the end of the clock. What is beyond it is refused, and nothing wraps
// around.
#include "simulator/virtual_time.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "model/cluster/topology_graph.h"
#include "simulator/simulate.h"
#include "tests/model/cluster/clusters.h"
#include "tests/simulator/call_graph.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Picoseconds kTick{1};

// 2^63 ps are 9,223,372 s.
TEST(VirtualTime, IsAtItsEndWhereATimeIsBeyondIt) {
  EXPECT_EQ(to_picoseconds(Seconds(9e6)).count(), 9'000'000'000'000'000'000);
  EXPECT_LT(to_picoseconds(Seconds(9'223'372)), kEndOfClock);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
  for (const double beyond : {9'223'373.0, 1e300, kInfinity, kNotANumber}) {
    EXPECT_EQ(to_picoseconds(Seconds(beyond)), kEndOfClock) << beyond;
  }
}

TEST(VirtualTime, DoesNotWrapAround) {
  EXPECT_EQ(later(Picoseconds(2), Picoseconds(3)), Picoseconds(5));
  EXPECT_EQ(later(kEndOfClock - 2 * kTick, kTick), kEndOfClock - kTick);
  EXPECT_EQ(later(kEndOfClock - kTick, kTick), kEndOfClock);
  EXPECT_EQ(later(kEndOfClock - kTick, 2 * kTick), kEndOfClock);
  EXPECT_EQ(later(kEndOfClock, kEndOfClock), kEndOfClock);
}

// Plays copies on one rank, which take the given durations to the picosecond.
Expected<Timeline> copies(const std::vector<Picoseconds>& durations) {
  TaskList list;
  for (const Picoseconds duration : durations) {
    list.add({.kind = TaskKind::copy, .stream = Stream::copy, .duration = duration});
  }
  return simulate({.lists = {list}, .ranks = {{0, {}}}});
}

void expect_refused(const Expected<Timeline>& timeline) {
  ASSERT_FALSE(timeline);
  EXPECT_EQ(timeline.error().where, "simulation");
  EXPECT_EQ(timeline.error().message,
            "found a longer step, allowed up to 106 days, the range of its clock");
}

TEST(EndOfClock, IsWhereTasksAreRefused) {
  const auto before = copies({kEndOfClock - 3 * kTick, kTick, kTick});
  ASSERT_TRUE(before);
  EXPECT_EQ(before->makespan, kEndOfClock - kTick);
  expect_refused(copies({kEndOfClock - 3 * kTick, kTick, 2 * kTick}));
  expect_refused(copies({kEndOfClock - kTick, kEndOfClock - kTick, kTick}));
  expect_refused(copies({kEndOfClock}));
}

// A day at a hundredth of the speed takes 100 days, at 1/107 it takes 107; the same holds for
// loads.
TEST(EndOfClock, IsWhereSlowRanksAreRefused) {
  TaskList list;
  list.add({.duration = to_picoseconds(kDay)});
  TaskGraph graph{.lists = {list}, .ranks = {{0, {}}}};
  const auto slow = simulate(graph, {.speeds = {{0, 0.01}}});
  ASSERT_TRUE(slow);
  EXPECT_NEAR(to_seconds(slow->makespan) / kDay, 100, 1e-9);
  expect_refused(simulate(graph, {.speeds = {{0, 1.0 / 107}}}));
  expect_refused(simulate(graph, {.speeds = {{0, 1e-300}}}));
  graph.lists[0].tasks[0].load = 0;
  graph.loads = {{107}};
  graph.ranks[0].loads = 0;
  expect_refused(simulate(graph));
}

// Plays a message from rank 0 to rank 1 at 450 GB/s without latency.
class LongMessage : public testing::Test {
 protected:
  Expected<Timeline> played(Seconds message, Seconds compute = Seconds(0)) const {
    TaskGraph graph = call_graph(
        2, {{0, 1}}, {named_call(CollectiveOperation::send, "direct", message * 450.0_GBps)});
    if (compute > Seconds(0)) graph.lists[0].add({.duration = to_picoseconds(compute)});
    return simulate(graph, {.network = NetworkModel{cluster_, topology_}, .overlap_slowdown = 0.9});
  }

  static Cluster without_latency() {
    Cluster cluster = fat_tree_cluster(1, 1, 1);
    cluster.intra.latency = {};
    return cluster;
  }
  const Cluster cluster_ = without_latency();
  const TopologyGraph topology_ = make_topology(cluster_);
};

TEST_F(LongMessage, IsRefusedBeyondTheClock) {
  const auto long_one = played(106 * kDay);
  ASSERT_TRUE(long_one);
  EXPECT_NEAR(to_seconds(long_one->makespan) / kDay, 106, 1e-9);
  expect_refused(played(107 * kDay));
  expect_refused(played(Seconds(1e290)));
}

// 20 days of compute would take 200 at a tenth of the speed. But the message beside them ends after
// a day, when 0.1 of the 20 days are done.
TEST_F(LongMessage, DoesNotRefuseWhatItOnlyHoldsUpForAWhile) {
  const auto timeline = played(kDay, 20 * kDay);
  ASSERT_TRUE(timeline);
  EXPECT_NEAR(to_seconds(timeline->makespan) / kDay, 20.9, 1e-9);
}

}  // namespace
}  // namespace trainyard
