#include "simulator/graph/graph_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace trainyard {
namespace {

bool within(std::int32_t index, std::size_t size) {
  return index >= 0 && static_cast<std::size_t>(index) < size;
}

bool communicates(const Task& task) {
  return task.kind != TaskKind::compute && task.kind != TaskKind::copy;
}

Expected<void> check_task(const TaskGraph& graph, std::size_t list, std::int32_t index) {
  const TaskList& tasks = graph.lists[list];
  const Task& task = tasks.tasks[static_cast<std::size_t>(index)];
  const auto wrong = [&](std::string_view what) {
    return failure(fmt::format("list {}, {}", list, tasks.name_of(index)), std::string(what));
  };
  if (task.duration.count() < 0) return wrong("found a negative duration");
  for (const std::int32_t other : tasks.dependencies_of(index)) {
    if (!within(other, tasks.tasks.size())) {
      return wrong(fmt::format("found a dependency on task {}, allowed 0 to {}", other,
                               tasks.tasks.size() - 1));
    }
  }
  if (!communicates(task) || task.kind == TaskKind::receive) return {};
  if (!within(task.call, graph.calls.size())) return wrong("found no call of that index");
  const Call& call = graph.calls[static_cast<std::size_t>(task.call)];
  const bool is_send = call.operation == CollectiveOperation::send;
  if (is_send != (task.kind == TaskKind::send)) return wrong("found a call of another operation");
  return {};
}

Expected<void> check_list(const TaskGraph& graph, std::size_t list) {
  const TaskList& tasks = graph.lists[list];
  if (tasks.first_dependency.size() != tasks.tasks.size() + 1) {
    return failure(fmt::format("list {}", list), "tasks and dependencies differ in number");
  }
  for (std::size_t task = 0; task < tasks.tasks.size(); ++task) {
    auto checked = check_task(graph, list, static_cast<std::int32_t>(task));
    if (!checked) return checked;
  }
  return {};
}

// The pairs (channel, kind of task) that a list uses.
using StreamUses = std::set<std::pair<std::int32_t, TaskKind>>;
StreamUses uses_of(const TaskList& list) {
  StreamUses uses;
  auto last = uses.end();  // usually the same as the next
  for (const Task& task : list.tasks) {
    if (!communicates(task)) continue;
    const std::pair use(task.channel, task.kind);
    if (last == uses.end() || *last != use) last = uses.insert(use).first;
  }
  return uses;
}

std::int32_t last_load_of(const TaskList& list) {
  std::int32_t last = -1;
  for (const Task& task : list.tasks) last = std::max(last, task.load);
  return last;
}

class RankCheck {
 public:
  explicit RankCheck(const TaskGraph& graph) : graph_(graph), sorted_(graph.groups) {
    for (TaskGroup& group : sorted_) std::sort(group.begin(), group.end());
    for (const TaskList& list : graph.lists) {
      uses_.push_back(uses_of(list));
      last_load_.push_back(last_load_of(list));
    }
  }

  Expected<void> check(std::size_t rank) const {
    const TaskRank& of = graph_.ranks[rank];
    if (!within(of.list, graph_.lists.size())) {
      return failure(fmt::format("rank {}", rank), fmt::format("found no list {}", of.list));
    }
    if (auto checked = check_loads(rank); !checked) return checked;
    for (const auto& [channel, kind] : uses_[static_cast<std::size_t>(of.list)]) {
      auto checked = check_use(static_cast<std::int32_t>(rank), channel, kind);
      if (!checked) return checked;
    }
    return {};
  }

 private:
  Expected<void> check_loads(std::size_t rank) const {
    const TaskRank& of = graph_.ranks[rank];
    if (of.loads < 0) return {};
    const bool has_all =
        within(of.loads, graph_.loads.size()) &&
        last_load_[static_cast<std::size_t>(of.list)] <
            static_cast<std::int64_t>(graph_.loads[static_cast<std::size_t>(of.loads)].size());
    if (has_all) return {};
    return failure(fmt::format("rank {}", rank), "found no load for some of its tasks");
  }

  Expected<void> check_use(std::int32_t rank, std::int32_t channel, TaskKind kind) const {
    const std::vector<std::int32_t>& groups = graph_.ranks[static_cast<std::size_t>(rank)].groups;
    const std::string where = fmt::format("rank {}", rank);
    if (!within(channel, groups.size())) {
      return failure(where, fmt::format("found no group on its channel {}", channel));
    }
    const std::int32_t group = groups[static_cast<std::size_t>(channel)];
    if (!within(group, graph_.groups.size())) {
      return failure(where, fmt::format("found no group {}", group));
    }
    if (!has_role(rank, static_cast<std::size_t>(group), kind)) {
      return failure(where, fmt::format("is not a member of group {} in that role", group));
    }
    return {};
  }

  bool has_role(std::int32_t rank, std::size_t group, TaskKind kind) const {
    const TaskGroup& members = graph_.groups[group];
    const TaskGroup& sorted = sorted_[group];
    if (kind == TaskKind::collective) return std::binary_search(sorted.begin(), sorted.end(), rank);
    return members.size() == 2 && members[kind == TaskKind::send ? 0 : 1] == rank;
  }

  const TaskGraph& graph_;
  std::vector<TaskGroup> sorted_;
  std::vector<StreamUses> uses_;
  std::vector<std::int32_t> last_load_;  // of each list
};

Expected<void> check_groups(const TaskGraph& graph) {
  for (std::size_t group = 0; group < graph.groups.size(); ++group) {
    for (const std::int32_t member : graph.groups[group]) {
      if (!within(member, graph.ranks.size())) {
        return failure(fmt::format("group {}", group),
                       fmt::format("found rank {}, allowed 0 to {}", member,
                                   static_cast<int>(graph.ranks.size()) - 1));
      }
    }
  }
  return {};
}

}  // namespace

Expected<void> check_graph(const TaskGraph& graph) {
  for (std::size_t list = 0; list < graph.lists.size(); ++list) {
    auto checked = check_list(graph, list);
    if (!checked) return checked;
  }
  auto groups = check_groups(graph);
  if (!groups) return groups;
  const RankCheck ranks(graph);
  for (std::size_t rank = 0; rank < graph.ranks.size(); ++rank) {
    auto checked = ranks.check(rank);
    if (!checked) return checked;
  }
  return {};
}

}  // namespace trainyard
