#include "tests/simulator/call_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/cluster/topology_graph.h"

namespace trainyard {

Call named_call(CollectiveOperation operation, std::string_view algorithm, Bytes message) {
  return {operation, find_collective_algorithm(operation, algorithm), message};
}

std::vector<TaskGroup> sibling_groups(int ranks, GroupShape shape) {
  const int run = shape.run == 0 ? shape.size : shape.run;
  const int jump = shape.run == 0 ? 0 : shape.jump;
  std::vector<bool> taken(static_cast<std::size_t>(ranks));
  std::vector<TaskGroup> groups;
  for (int first = 0; first < ranks; ++first) {
    if (taken[static_cast<std::size_t>(first)]) continue;
    groups.emplace_back();
    for (int i = 0; i < shape.size; ++i) {
      const int rank = first + i % run * shape.stride + i / run * jump;
      taken[static_cast<std::size_t>(rank)] = true;
      groups.back().push_back(rank);
    }
  }
  return groups;
}

TaskGraph call_graph(int ranks, const std::vector<TaskGroup>& groups,
                     const std::vector<Call>& calls, int times) {
  TaskGraph graph;
  graph.groups = groups;
  graph.calls = calls;
  for (int rank = 0; rank < ranks; ++rank) {
    TaskList list;
    TaskRank of{.list = rank};
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const auto member = std::find(groups[group].begin(), groups[group].end(), rank);
      if (member == groups[group].end()) continue;
      const bool message = calls[group].operation == CollectiveOperation::send;
      Task task{.kind = TaskKind::collective,
                .stream = static_cast<Stream>(1 + of.groups.size() % (kStreams - 1)),
                .channel = static_cast<std::int32_t>(of.groups.size()),
                .call = static_cast<std::int32_t>(group)};
      if (message) task.kind = *member == groups[group][0] ? TaskKind::send : TaskKind::receive;
      of.groups.push_back(static_cast<std::int32_t>(group));
      for (int i = 0; i < times; ++i) list.add(task);
    }
    graph.lists.push_back(std::move(list));
    graph.ranks.push_back(std::move(of));
  }
  return graph;
}

double seconds_taken(const TaskGraph& graph, const Cluster& cluster, const TopologyGraph& topology,
                     NetworkGrain grain) {
  const auto timeline = simulate(graph, {.network = NetworkModel{cluster, topology, grain}});
  EXPECT_TRUE(timeline) << timeline.error().where << ": " << timeline.error().message;
  return to_seconds(timeline->makespan).value();
}

bool takes_its_closed_form(const Cluster& cluster, GroupShape shape,
                           const CollectiveAlgorithm& algorithm, Bytes message) {
  const TopologyGraph topology = make_topology(cluster);
  const GroupLinks links = group_links(fabric_tiers(cluster, topology), shape);
  if (!algorithm.applies(links)) return false;
  if (algorithm.operation == CollectiveOperation::send && shape.size != 2) return false;
  const auto groups = sibling_groups(cluster.devices(), shape);
  const Call call = {algorithm.operation, &algorithm, message};
  const TaskGraph graph = call_graph(cluster.devices(), groups, std::vector(groups.size(), call));
  const double expected = algorithm.time(links, message).value();
  for (const NetworkGrain grain : {NetworkGrain::collective, NetworkGrain::message}) {
    EXPECT_NEAR(seconds_taken(graph, cluster, topology, grain) / expected, 1, 1e-6)
        << algorithm.name << (grain == NetworkGrain::message ? ", messages" : ", collectives");
  }
  return true;
}

std::vector<double> group_seconds(const TaskGraph& graph, const Cluster& cluster,
                                  const TopologyGraph& topology, NetworkGrain grain) {
  const Timeline timeline =
      simulate(graph, {.network = NetworkModel{cluster, topology, grain}}).value();
  std::vector<double> seconds(graph.groups.size());
  for (std::size_t rank = 0; rank < graph.ranks.size(); ++rank) {
    const TaskList& list = graph.lists[rank];
    const auto times = timeline.of(static_cast<int>(rank));
    for (std::size_t task = 0; task < list.tasks.size(); ++task) {
      const auto channel = static_cast<std::size_t>(list.tasks[task].channel);
      double& group = seconds[static_cast<std::size_t>(graph.ranks[rank].groups[channel])];
      group = std::max(group, to_seconds(times[task].end).value());
    }
  }
  return seconds;
}

}  // namespace trainyard
