#include "simulator/step/link_traffic.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "model/interrupted.h"
#include "simulator/engine/phases.h"

namespace trainyard {
namespace {

// For each {group, call} the number of times that it is made, each weighted with its load.
using CallsMade = std::map<std::pair<std::int32_t, std::int32_t>, double>;

struct LoadedCall {
  std::int32_t call = 0;
  double load = 1;
};

// The n-th collective of a group is the n-th of each member and has the load of its busiest member;
// a message has that of its sender.
CallsMade calls_made(const TaskGraph& graph) {
  std::vector<std::vector<LoadedCall>> of_group(graph.groups.size());
  for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
    const TaskRank& rank = graph.ranks[r];
    std::vector<std::size_t> next(rank.groups.size());
    for (const Task& task : graph.lists[static_cast<std::size_t>(rank.list)].tasks) {
      if (task.call < 0) continue;
      const auto channel = static_cast<std::size_t>(task.channel);
      auto& made = of_group[static_cast<std::size_t>(rank.groups[channel])];
      const std::size_t place = next[channel]++;
      if (place == made.size()) made.push_back({task.call, 0});
      const double load = graph.load_of(static_cast<std::int32_t>(r), task);
      made[place].load = std::max(made[place].load, load);
    }
  }
  CallsMade sums;
  for (std::size_t group = 0; group < of_group.size(); ++group) {
    for (const LoadedCall& made : of_group[group]) {
      sums[{static_cast<std::int32_t>(group), made.call}] += made.load;
    }
  }
  return sums;
}

void add_call(Fabrics& fabric, GroupView members, const Call& call, double times,
              std::vector<LinkTraffic>& links) {
  for (const CallPhase& phase : phases_of(fabric, members, call)) {
    for (const LinkUse& use : phase.links) {
      links[static_cast<std::size_t>(use.link)].carried += phase.bytes * (use.share * times);
    }
  }
}

}  // namespace

Expected<std::vector<LinkTraffic>> link_traffic(const PreparedJob& job,
                                                const StepConditions& conditions,
                                                const StepGraph& step,
                                                const std::atomic<bool>* interrupted) {
  const auto topology = degraded_topology(job, conditions.links);
  const FabricGroup nodes{&job.job.cluster, topology.get()};
  auto fabric = Fabrics::make({&nodes, 1}, {}, FabricLinks::all);
  if (!fabric) return tl::unexpected(fabric.error());
  std::vector<LinkTraffic> links;
  for (const BytesPerSecond capacity : fabric->capacities()) {
    links.push_back({static_cast<std::int32_t>(links.size()), capacity, Bytes(0)});
  }
  for (const auto& [key, times] : calls_made(step.graph)) {
    const auto group = static_cast<std::size_t>(key.first);
    const Call& call = step.graph.calls[static_cast<std::size_t>(key.second)];
    const std::size_t copies = step.folded() ? step.graph.copies[group].size() : 1;
    for (std::size_t copy = 0; copy < copies; ++copy) {
      if (is_set(interrupted)) return failure("", "interrupted");
      const GroupView members =
          step.folded() ? step.graph.copies[group][copy] : GroupView(step.graph.groups[group]);
      add_call(*fabric, members, call, times, links);
    }
  }
  return links;
}

}  // namespace trainyard
