#include "simulator/reading/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "simulator/reading/operation_sums.h"

namespace trainyard {
namespace {

// The tasks of each channel of a list in order, and the number of each task in its channel.
struct ListIndex {
  std::vector<std::vector<std::int32_t>> of_channel;
  std::vector<std::int32_t> number;
  std::vector<std::int32_t> before;  // the task before it on its stream; −1: none
};

ListIndex index_of(const TaskList& list) {
  ListIndex index;
  index.number.reserve(list.tasks.size());
  index.before = list.before_on_stream();
  for (std::size_t i = 0; i < list.tasks.size(); ++i) {
    const Task& task = list.tasks[i];
    index.number.push_back(-1);
    if (task.channel < 0) continue;
    const auto channel = static_cast<std::size_t>(task.channel);
    if (channel >= index.of_channel.size()) index.of_channel.resize(channel + 1);
    index.number.back() = static_cast<std::int32_t>(index.of_channel[channel].size());
    index.of_channel[channel].push_back(static_cast<std::int32_t>(i));
  }
  return index;
}

struct At {
  int rank = 0;
  std::int32_t task = -1;
};

class PathFinder {
 public:
  PathFinder(const StepGraph& step, const Timeline& timeline) : step_(step), timeline_(timeline) {
    for (const TaskList& list : step.graph.lists) indices_.push_back(index_of(list));
  }

  std::vector<PathStep> find() const {
    std::vector<PathStep> path;
    At at = last();
    Picoseconds end = timeline_.makespan;
    while (at.task >= 0 && end.count() > 0) {
      at = decisive(at);
      const At next = waited_for(at);
      const Picoseconds start = next.task < 0 ? Picoseconds(0) : std::min(end, times(next).end);
      if (start < end) path.push_back({at.rank, at.task, start, end});
      end = start;
      at = next;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  const Task& task(At at) const {
    return step_.graph.lists[step_.graph.list_of(at.rank)].tasks[static_cast<std::size_t>(at.task)];
  }
  TaskTimes times(At at) const {
    return timeline_.times[timeline_.first[static_cast<std::size_t>(at.rank)] +
                           static_cast<std::size_t>(at.task)];
  }

  At last() const {
    At found;
    Picoseconds latest{-1};
    for (int rank = 0; rank < static_cast<int>(step_.graph.ranks.size()); ++rank) {
      const std::span<const TaskTimes> of = timeline_.of(rank);
      for (std::size_t i = 0; i < of.size(); ++i) {
        if (of[i].end <= latest) continue;
        latest = of[i].end;
        found = {rank, static_cast<std::int32_t>(i)};
      }
    }
    return found;
  }

  // What ended last of what a task waited for on its own rank.
  At waited_for(At at) const {
    const std::size_t list = step_.graph.list_of(at.rank);
    At latest{at.rank, indices_[list].before[static_cast<std::size_t>(at.task)]};
    for (const std::int32_t other : step_.graph.lists[list].dependencies_of(at.task)) {
      const At candidate{at.rank, other};
      if (latest.task < 0 || times(candidate).end > times(latest).end) latest = candidate;
    }
    return latest;
  }

  // The same call on the rank that decided when it happened: the sender of a message, or the member
  // that reached a collective last.
  At decisive(At at) const {
    if (task(at).kind == TaskKind::receive) {
      const At sent = same_call(at, group_of(at).front());
      return sent.task >= 0 && times(sent).end >= times(at).end ? sent : at;
    }
    if (task(at).kind != TaskKind::collective) return at;
    At latest = at;
    for (const std::int32_t member : group_of(at)) {
      const At other = member == at.rank ? at : same_call(at, member);
      if (other.task >= 0 && times(other).start > times(latest).start) latest = other;
    }
    return latest;
  }

  std::int32_t group_index(At at) const {
    return step_.graph.ranks[static_cast<std::size_t>(at.rank)]
        .groups[static_cast<std::size_t>(task(at).channel)];
  }
  const TaskGroup& group_of(At at) const {
    return step_.graph.groups[static_cast<std::size_t>(group_index(at))];
  }

  // The task of `other` that belongs to the same call.
  At same_call(At at, int other) const {
    const std::vector<std::int32_t>& groups =
        step_.graph.ranks[static_cast<std::size_t>(other)].groups;
    const auto found = std::find(groups.begin(), groups.end(), group_index(at));
    const auto channel = static_cast<std::size_t>(found - groups.begin());
    const auto& tasks = indices_[step_.graph.list_of(other)].of_channel;
    const auto number = static_cast<std::size_t>(
        indices_[step_.graph.list_of(at.rank)].number[static_cast<std::size_t>(at.task)]);
    if (channel >= tasks.size() || number >= tasks[channel].size()) return {other, -1};
    return {other, tasks[channel][number]};
  }

  const StepGraph& step_;
  const Timeline& timeline_;
  std::vector<ListIndex> indices_;
};

}  // namespace

std::vector<PathStep> critical_path(const StepGraph& step, const Timeline& timeline) {
  return PathFinder(step, timeline).find();
}

std::string operation_name(const StepTask& task) {
  if (task.kind == StepTaskKind::launch) return "launch";
  if (task.kind == StepTaskKind::update_overhead) return described(task);
  const Operation& operation = *task.issued.operation;
  std::string text = kind_and_part(operation);
  if (!operation.part && operation.group != Group::none) {
    text += fmt::format(" ({})", name_of(operation.group));
  }
  if (operation.recomputed) text += " again";
  return text + fmt::format(", {}", name_of(task.issued.step->pass));
}

std::vector<PathShare> path_shares(const StepGraph& step, const std::vector<PathStep>& path) {
  OperationSums sums;
  for (const PathStep& of : path) {
    const std::vector<StepTask>& tasks = step.tasks[step.graph.list_of(of.rank)];
    sums.add(tasks[static_cast<std::size_t>(of.task)], of.end - of.start);
  }
  const auto by_name = sums.by_name(operation_name);
  std::vector<PathShare> shares;
  shares.reserve(by_name.size());
  for (const auto& [name, sum] : by_name) {
    shares.push_back({name, sum.tasks, to_seconds(sum.time)});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
  return shares;
}

}  // namespace trainyard
