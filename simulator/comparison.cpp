#include "simulator/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/critical_path.h"
#include "simulator/step_breakdown.h"

namespace trainyard {
namespace {

using ByOperation = std::map<std::pair<int, std::string>, OperationDifference>;

// For each stage the rank whose kernels take longest.
std::vector<int> slowest_ranks(const StepSimulation& simulation) {
  std::vector<int> slowest(simulation.step.graph.lists.size(), -1);
  std::vector<Picoseconds> most(slowest.size(), Picoseconds(-1));
  for (std::size_t rank = 0; rank < simulation.step.graph.ranks.size(); ++rank) {
    const auto stage = static_cast<std::size_t>(simulation.step.graph.ranks[rank].list);
    const Picoseconds busy =
        busy_time(simulation.step, simulation.timeline, static_cast<int>(rank));
    if (busy <= most[stage]) continue;
    most[stage] = busy;
    slowest[stage] = static_cast<int>(rank);
  }
  return slowest;
}

struct Sum {
  const StepTask* one = nullptr;
  int tasks = 0;
  Picoseconds time{0};
};

template <typename Add>
void add_up(const StepSimulation& simulation, ByOperation& all, Add add) {
  const std::vector<int> ranks = slowest_ranks(simulation);
  for (std::size_t stage = 0; stage < ranks.size(); ++stage) {
    const std::vector<StepTask>& tasks = simulation.step.tasks[stage];
    const auto times = simulation.timeline.of(ranks[stage]);
    std::map<std::tuple<StepTaskKind, const Operation*, StepPass>, Sum> sums;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const IssuedOperation& issued = tasks[i].issued;
      Sum& sum = sums[{tasks[i].kind, issued.operation, issued.step->pass}];
      sum.one = &tasks[i];
      ++sum.tasks;
      sum.time += times[i].end - times[i].start;
    }
    for (const auto& [key, sum] : sums) {
      const std::string name = operation_name(*sum.one);
      OperationDifference& of = all[{static_cast<int>(stage), name}];
      of.stage = static_cast<int>(stage);
      of.operation = name;
      add(of, sum);
    }
  }
}

}  // namespace

std::vector<OperationDifference> compare(const StepSimulation& before,
                                         const StepSimulation& after) {
  ByOperation all;
  add_up(before, all, [](OperationDifference& of, const Sum& sum) {
    of.tasks_before += sum.tasks;
    of.before += to_seconds(sum.time);
  });
  add_up(after, all, [](OperationDifference& of, const Sum& sum) {
    of.tasks_after += sum.tasks;
    of.after += to_seconds(sum.time);
  });
  std::vector<OperationDifference> list;
  list.reserve(all.size());
  for (auto& [key, difference] : all) list.push_back(std::move(difference));
  std::stable_sort(list.begin(), list.end(),
                   [](const OperationDifference& a, const OperationDifference& b) {
                     return std::abs(a.longer().value()) > std::abs(b.longer().value());
                   });
  return list;
}

}  // namespace trainyard
