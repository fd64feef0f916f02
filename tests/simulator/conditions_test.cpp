// Ranks of unlike speed, and compute beside communication, with times counted by hand.
#include "simulator/conditions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/cluster/topology_graph.h"
#include "simulator/simulate.h"
#include "tests/model/cluster/clusters.h"
#include "tests/model/schedule/pass_times.h"
#include "tests/simulator/call_graph.h"
#include "tests/simulator/pass_graph.h"

namespace trainyard {
namespace {

using Tasks = std::vector<std::int32_t>;

std::string error_of(const Conditions& conditions) {
  const auto checked = check(conditions, 4);
  return checked ? "none" : checked.error().where + ": " + checked.error().message;
}

TaskGraph row_of(int tasks, int ranks = 1) {
  TaskList list;
  for (int i = 0; i < tasks; ++i) list.add({.duration = Picoseconds(1000)});
  return {.lists = {list}, .ranks = std::vector(static_cast<std::size_t>(ranks), TaskRank{0, {}})};
}

TEST(Conditions, RefuseNumbersThatMeanNothing) {
  EXPECT_EQ(error_of({}), "none");
  EXPECT_EQ(error_of({.speeds = {{4, 0.5}}}), "speeds: found rank 4, allowed 0 to 3");
  EXPECT_EQ(error_of({.speeds = {{1, 0}}}), "speeds: found 0 for rank 1, allowed more than 0");
  EXPECT_EQ(error_of({.jitter = -0.1}), "jitter: found -0.1, allowed 0 or more");
  EXPECT_EQ(error_of({.jitter = std::nan("")}), "jitter: found nan, allowed 0 or more");
  EXPECT_EQ(error_of({.overlap_slowdown = 1.5}), "overlap_slowdown: found 1.5, allowed 0 to 1");
}

TEST(Straggler, TakesLongerForItsComputeAndForNothingElse) {
  TaskGraph graph = row_of(2, 2);
  graph.lists[0].add(
      {.kind = TaskKind::copy, .stream = Stream::copy, .duration = Picoseconds(700)});
  const Timeline timeline = simulate(graph, {.speeds = {{1, 0.8}}}).value();
  EXPECT_EQ(timeline.of(0)[1].end, Picoseconds(2000));
  EXPECT_EQ(timeline.of(1)[1].end, Picoseconds(2500));
  EXPECT_EQ(timeline.of(1)[2].end, Picoseconds(700));
}

TEST(Straggler, HeatsUpInTheMiddleOfAStep) {
  const Timeline timeline = simulate(row_of(4), {.speeds = {{0, 0.5, Picoseconds(2000)}}}).value();
  EXPECT_EQ(timeline.makespan, Picoseconds(2000 + 2 * 2000));
}

// Handbook §8, unlike stages: the span of gpipe is m·max T + ΣT − max T. A stage at half speed is a
// stage of twice the time.
TEST(Straggler, IsAStageOfAnotherLength) {
  const PipelineShape shape = {4, 1, 8};
  const TaskGraph graph = pass_graph(find_schedule("gpipe")->passes(shape), shape,
                                     uniform_times(shape, picoseconds(10, 10, 10)));
  const Timeline timeline = simulate(graph, {.speeds = {{2, 0.5}}}).value();
  EXPECT_EQ(timeline.makespan, Picoseconds(8 * 60 + 3 * 30));
}

TEST(Jitter, HasTheMeanAndTheDeviationThatWereAskedFor) {
  const Conditions conditions = {.jitter = 0.1, .seed = 5};
  double sum = 0;
  double squares = 0;
  constexpr int kTasks = 20000;
  for (int task = 0; task < kTasks; ++task) {
    const double factor = jitter_factor(conditions, task % 7, task);
    sum += factor;
    squares += (factor - 1) * (factor - 1);
  }
  EXPECT_NEAR(sum / kTasks, 1, 0.003);  // four standard errors: 4 · 0.1 / √20000
  EXPECT_NEAR(std::sqrt(squares / kTasks), 0.1, 0.003);
}

TEST(Jitter, IsTheSameForTheSameSeedOnly) {
  const TaskGraph graph = row_of(50, 3);
  const auto with_seed = [&](std::uint64_t seed) {
    return simulate(graph, {.jitter = 0.2, .seed = seed}).value();
  };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1).makespan, with_seed(2).makespan);
  EXPECT_NE(with_seed(1).of(0)[0].end, with_seed(1).of(1)[0].end);
}

// A message from rank 0 to rank 1, and compute tasks on both beside it.
class Overlap : public testing::Test {
 protected:
  // A message of 450 kB over NVLink without latency: 1 µs.
  Timeline beside(double slowdown, std::vector<Picoseconds> compute) const {
    TaskGraph graph =
        call_graph(2, {{0, 1}}, {named_call(CollectiveOperation::send, "direct", Bytes(450e3))});
    for (TaskList& list : graph.lists) {
      for (const Picoseconds duration : compute) list.add({.duration = duration});
    }
    return simulate(graph,
                    {.network = NetworkModel{cluster_, topology_}, .overlap_slowdown = slowdown})
        .value();
  }

  // A message each way, and a compute task of 3 µs on both ranks.
  Timeline beside_both_ways(double slowdown) const {
    const Call message = named_call(CollectiveOperation::send, "direct", Bytes(450e3));
    TaskGraph graph = call_graph(2, {{0, 1}, {1, 0}}, {message, message});
    for (TaskList& list : graph.lists) list.add({.duration = Picoseconds(3000000)});
    return simulate(graph,
                    {.network = NetworkModel{cluster_, topology_}, .overlap_slowdown = slowdown})
        .value();
  }

  static Cluster without_latency() {
    Cluster cluster = fat_tree_cluster(1, 1, 1);
    cluster.intra.latency = {};
    return cluster;
  }
  const Cluster cluster_ = without_latency();
  const TopologyGraph topology_ = make_topology(cluster_);
};

constexpr Picoseconds kMicrosecond{1000000};

TEST_F(Overlap, CostsNothingWithoutASlowDown) {
  EXPECT_EQ(beside(0, {3 * kMicrosecond}).of(0)[1].end, 3 * kMicrosecond);
}

// One microsecond of communication takes 0.6 µs of compute from both ends of the message.
TEST_F(Overlap, LosesTheSecondsOfComputeThatTheStackIsCalibratedTo) {
  const Timeline timeline = beside(0.6, {3 * kMicrosecond});
  EXPECT_EQ(timeline.of(0)[0].end, kMicrosecond);
  EXPECT_EQ(timeline.of(0)[1].end.count(), 3600000);
  EXPECT_EQ(timeline.of(1)[1].end.count(), 3600000);
}

// At a slowdown of 0.6, 0.2 µs of compute take 0.5 µs. The next task is slowed for the rest of the
// microsecond.
TEST_F(Overlap, IsSharedByTheTasksThatRunBesideIt) {
  const Timeline timeline = beside(0.6, {kMicrosecond / 5, kMicrosecond});
  EXPECT_EQ(timeline.of(0)[1].end.count(), 500000);
  EXPECT_EQ(timeline.of(0)[2].end.count(), 1000000 + 800000);  // 0.2 µs done beside it
}

// The slowdowns of sending and receiving add up: 0.2 of the microsecond are left for compute. More
// than all of it cannot be lost.
TEST_F(Overlap, AddsUpInBothDirections) {
  for (const int rank : {0, 1}) {
    EXPECT_EQ(beside_both_ways(0.4).of(rank)[2].end.count(), 3800000);
    EXPECT_EQ(beside_both_ways(0.6).of(rank)[2].end.count(), 4000000);
    EXPECT_EQ(beside_both_ways(1).of(rank)[2].end.count(), 4000000);
  }
}

TEST_F(Overlap, StopsComputeWhereCommunicationTakesEverything) {
  EXPECT_EQ(beside(1, {kMicrosecond}).of(0)[1].end, 2 * kMicrosecond);
}

}  // namespace
}  // namespace trainyard
