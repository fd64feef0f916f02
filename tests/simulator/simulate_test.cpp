// Small graphs whose times can be counted by hand, and graphs that are refused.
#include "simulator/simulate.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

using Tasks = std::vector<std::int32_t>;

Task compute(int picoseconds) { return {.duration = Picoseconds(picoseconds)}; }
Task copy(int picoseconds) {
  return {.kind = TaskKind::copy, .stream = Stream::copy, .duration = Picoseconds(picoseconds)};
}
Task collective(std::int32_t channel, std::int32_t call = 0, Stream stream = Stream::tensor) {
  return {.kind = TaskKind::collective, .stream = stream, .channel = channel, .call = call};
}
Task send(std::int32_t channel) {
  return {.kind = TaskKind::send, .stream = Stream::pipeline, .channel = channel, .call = 0};
}
Task receive(std::int32_t channel) {
  return {.kind = TaskKind::receive, .stream = Stream::receive, .channel = channel};
}

Call call_of(CollectiveOperation operation, double bytes = 0) {
  return {operation, nullptr, Bytes(bytes)};
}

// Ranks that each run their own list and form one group, on channel 0.
TaskGraph one_group(std::vector<TaskList> lists, CollectiveOperation operation) {
  TaskGraph graph;
  graph.lists = std::move(lists);
  graph.calls = {call_of(operation)};
  graph.groups.emplace_back();
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(graph.lists.size()); ++rank) {
    graph.ranks.push_back({rank, {0}});
    graph.groups[0].push_back(rank);
  }
  return graph;
}

std::string error_of(const TaskGraph& graph) {
  const auto timeline = simulate(graph);
  return timeline ? "none" : timeline.error().where + ": " + timeline.error().message;
}

TEST(TaskList, KnowsTheTaskBeforeEachOnItsStream) {
  TaskList list;
  list.add(compute(1));
  list.add(collective(0));
  list.add(compute(1));
  list.add(receive(0));
  list.add(collective(0));
  EXPECT_EQ(list.before_on_stream(), (Tasks{-1, -1, 0, -1, 1}));
}

TEST(Simulate, RunsTheTasksOfAStreamOneAfterTheOther) {
  TaskList list;
  list.add(compute(3));
  list.add(compute(4));
  TaskGraph graph{.lists = {list}, .ranks = {{0, {}}}};
  const Timeline timeline = simulate(graph).value();
  EXPECT_EQ(timeline.of(0)[1], (TaskTimes{Picoseconds(3), Picoseconds(7)}));
  EXPECT_EQ(timeline.makespan, Picoseconds(7));
}

TEST(Simulate, RunsStreamsSideBySideUpToTheirDependencies) {
  TaskList list;
  const std::int32_t first = list.add(compute(3));
  list.add(compute(10));
  const std::int32_t out = list.add(copy(5), Tasks{first});
  list.add(compute(1), Tasks{out});
  const Timeline timeline = simulate({.lists = {list}, .ranks = {{0, {}}}}).value();
  EXPECT_EQ(timeline.of(0)[2], (TaskTimes{Picoseconds(3), Picoseconds(8)}));
  EXPECT_EQ(timeline.of(0)[3].start, Picoseconds(13));  // its stream is busy until then
}

TEST(Simulate, MakesACollectiveWaitForItsLastMember) {
  std::vector<TaskList> lists(3);
  for (int rank = 0; rank < 3; ++rank) {
    TaskList& list = lists[static_cast<std::size_t>(rank)];
    const std::int32_t before = list.add(compute(2 + 5 * rank));
    const std::int32_t sum = list.add(collective(0), Tasks{before});
    list.add(compute(1), Tasks{sum});
  }
  const Timeline timeline = simulate(one_group(lists, CollectiveOperation::all_reduce)).value();
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(timeline.of(rank)[1].start, Picoseconds(2 + 5 * rank));
    EXPECT_EQ(timeline.of(rank)[1].end, Picoseconds(12));
    EXPECT_EQ(timeline.of(rank)[2].end, Picoseconds(13));
  }
}

TEST(Simulate, LetsAMessageWaitForItsReceiverAndAReceiverForItsMessage) {
  std::vector<TaskList> lists(2);
  const std::int32_t work = lists[0].add(compute(5));
  lists[0].add(send(0), Tasks{work});
  lists[0].add(compute(20));
  lists[0].add(send(0), Tasks{2});
  const std::int32_t first = lists[1].add(receive(0));
  const std::int32_t long_work = lists[1].add(compute(30), Tasks{first});
  const std::int32_t second = lists[1].add(receive(0));
  lists[1].add(compute(1), Tasks{second, long_work});
  const Timeline timeline = simulate(one_group(lists, CollectiveOperation::send)).value();
  EXPECT_EQ(timeline.of(1)[0], (TaskTimes{Picoseconds(0), Picoseconds(5)}));
  EXPECT_EQ(timeline.of(1)[2], (TaskTimes{Picoseconds(5), Picoseconds(25)}));
  EXPECT_EQ(timeline.of(1)[3].start, Picoseconds(35));
}

TEST(Simulate, CountsTheCollectivesOfAGroupWhateverStreamTheyAreOn) {
  std::vector<TaskList> lists(2);
  for (TaskList& list : lists) {
    list.add(collective(0, 0, Stream::tensor));
    list.add(collective(0, 1, Stream::data), Tasks{0});
  }
  TaskGraph graph = one_group(lists, CollectiveOperation::all_reduce);
  graph.calls.push_back(call_of(CollectiveOperation::all_gather));
  EXPECT_TRUE(simulate(graph));
}

TEST(Simulate, SharesAListAmongRanks) {
  TaskList list;
  list.add(compute(4));
  list.add(collective(0), Tasks{0});
  TaskGraph graph{.lists = {list},
                  .ranks = {{0, {0}}, {0, {1}}, {0, {0}}, {0, {1}}},
                  .groups = {{0, 2}, {1, 3}},
                  .calls = {call_of(CollectiveOperation::all_reduce)}};
  const Timeline timeline = simulate(graph).value();
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(timeline.of(rank)[1].end, Picoseconds(4));
}

TEST(Simulate, RefusesAGraphWhoseIndicesNameNothing) {
  TaskList list;
  list.add(compute(1), Tasks{3});
  EXPECT_EQ(error_of({.lists = {list}, .ranks = {{0, {}}}}),
            "list 0, task 0: found a dependency on task 3, allowed 0 to 0");
  TaskList talks;
  talks.add(collective(1));
  EXPECT_EQ(error_of(one_group({talks}, CollectiveOperation::all_reduce)),
            "rank 0: found no group on its channel 1");
  EXPECT_EQ(error_of({.lists = {}, .ranks = {{0, {}}}}), "rank 0: found no list 0");
  EXPECT_EQ(error_of({.lists = {list}, .groups = {{4}}}),
            "list 0, task 0: found a dependency on task 3, allowed 0 to 0");
  EXPECT_EQ(error_of({.groups = {{4}}}), "group 0: found rank 4, allowed 0 to -1");
}

TEST(Simulate, RefusesACollectiveOfARankThatIsNoMember) {
  TaskList list;
  list.add(collective(0));
  TaskGraph graph = one_group({list, list}, CollectiveOperation::all_reduce);
  graph.groups[0] = {0};
  EXPECT_EQ(error_of(graph), "rank 1: is not a member of group 0 in that role");
}

TEST(Simulate, RefusesACollectiveThatIsNotTheSameOnAllRanks) {
  std::vector<TaskList> lists(2);
  lists[0].add(collective(0, 0));
  lists[1].add(collective(0, 1));
  TaskGraph graph = one_group(lists, CollectiveOperation::all_reduce);
  graph.calls.push_back(call_of(CollectiveOperation::all_gather));
  EXPECT_EQ(error_of(graph), "group 0: collective 0 is not the same on rank 0 and rank 1");
}

TEST(Simulate, NamesTheRankThatNeverJoins) {
  std::vector<TaskList> lists(2);
  lists[0].add(collective(0));
  lists[0].add(collective(0));
  lists[1].add(collective(0));
  EXPECT_EQ(error_of(one_group(lists, CollectiveOperation::all_reduce)),
            "task graph: task 1 of rank 0 waits for rank 1, which never joins it");
}

TEST(Simulate, NamesTheRankThatNeverSends) {
  std::vector<TaskList> lists(2);
  lists[1].add(receive(0));
  lists[1].names = {"receive gradient"};
  EXPECT_EQ(error_of(one_group(lists, CollectiveOperation::send)),
            "task graph: receive gradient of rank 1 waits for rank 0, which never sends it");
}

TEST(Simulate, NamesATaskThatWaitsForItself) {
  TaskList list;
  list.add(compute(1), Tasks{0});
  EXPECT_EQ(error_of({.lists = {list}, .ranks = {{0, {}}}}),
            "task graph: a deadlock: task 0 of rank 0 waits for itself");
}

TEST(Simulate, NamesTheCycleOfCollectivesInUnlikeOrder) {
  std::vector<TaskList> lists(2);
  lists[0].add(collective(0));
  lists[0].add(collective(1));
  lists[1].add(collective(1));
  lists[1].add(collective(0));
  TaskGraph graph = one_group(lists, CollectiveOperation::all_reduce);
  graph.groups.push_back({0, 1});
  for (TaskRank& rank : graph.ranks) rank.groups = {0, 1};
  EXPECT_EQ(error_of(graph),
            "task graph: a deadlock: task 0 of rank 0 waits for task 0 of rank 1, which waits for "
            "task 0 of rank 0");
}

}  // namespace
}  // namespace trainyard
