#include "simulator/reading/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "simulator/reading/critical_path.h"
#include "simulator/reading/operation_sums.h"
#include "simulator/step/breakdown.h"

namespace trainyard {
namespace {

using ByOperation = std::map<std::pair<int, std::string>, OperationDifference>;

// For each stage the rank with the longest kernel time.
std::vector<int> slowest_ranks(const StepSimulation& simulation) {
  std::vector<int> slowest(simulation.step.graph.lists.size(), -1);
  std::vector<Picoseconds> most(slowest.size(), Picoseconds(-1));
  for (int rank = 0; rank < static_cast<int>(simulation.step.graph.ranks.size()); ++rank) {
    const std::size_t stage = simulation.step.graph.list_of(rank);
    const Picoseconds busy = busy_time(simulation.step, simulation.timeline, rank);
    if (busy <= most[stage]) continue;
    most[stage] = busy;
    slowest[stage] = rank;
  }
  return slowest;
}

bool is_matrix_product(OperationKind kind) {
  switch (kind) {
    case OperationKind::linear:
    case OperationKind::linear_input_gradient:
    case OperationKind::linear_weight_gradient:
    case OperationKind::grouped_linear:
    case OperationKind::grouped_linear_input_gradient:
    case OperationKind::grouped_linear_weight_gradient:
      return true;
    default:
      return false;
  }
}

std::string_view kernel_of(OperationKind kind) {
  if (is_matrix_product(kind)) return "gemm";
  switch (kind) {
    case OperationKind::attention:
    case OperationKind::attention_step:
      return "attention forward";
    case OperationKind::attention_gradient:
    case OperationKind::attention_gradient_step:
      return "attention backward";
    case OperationKind::norm:
    case OperationKind::norm_gradient:
    case OperationKind::head_norm:
    case OperationKind::head_norm_gradient:
      return "norms";
    case OperationKind::all_reduce:
      return "all-reduce";
    case OperationKind::all_gather:
      return "all-gather";
    case OperationKind::reduce_scatter:
      return "reduce-scatter";
    case OperationKind::optimizer_step:
      return "optimizer";
    case OperationKind::sum_of_squares:
      return "reductions";
    case OperationKind::clear:
    case OperationKind::move:
    case OperationKind::copy:
    case OperationKind::await:
      return "copies";
    default:
      return is_communication(kind) ? "send, receive and all-to-all" : "element-wise";
  }
}

std::string class_name(const StepTask& task) { return std::string(kernel_class(task)); }

}  // namespace

std::string_view kernel_class(const StepTask& task) {
  const bool kernel = task.kind == StepTaskKind::operation;
  return kernel ? kernel_of(task.issued.operation->kind) : "launches and overheads";
}

std::vector<OperationTime> operation_times(const StepSimulation& simulation, OperationNames names) {
  std::vector<OperationTime> list;
  const std::vector<int> ranks = slowest_ranks(simulation);
  for (std::size_t stage = 0; stage < ranks.size(); ++stage) {
    const std::vector<StepTask>& tasks = simulation.step.tasks[stage];
    const auto times = simulation.timeline.of(ranks[stage]);
    OperationSums sums;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      sums.add(tasks[i], times[i].end - times[i].start);
    }
    const auto by_name =
        sums.by_name(names == OperationNames::program ? operation_name : class_name);
    for (const auto& [name, sum] : by_name) {
      list.push_back({static_cast<int>(stage), name, sum.tasks, to_seconds(sum.time)});
    }
  }
  return list;
}

std::vector<OperationDifference> compare(const StepSimulation& before,
                                         const StepSimulation& after) {
  return compare(operation_times(before, OperationNames::program),
                 operation_times(after, OperationNames::program));
}

std::vector<OperationDifference> compare(const std::vector<OperationTime>& before,
                                         const std::vector<OperationTime>& after) {
  ByOperation all;
  const auto difference_of = [&all](const OperationTime& time) -> OperationDifference& {
    OperationDifference& of = all[{time.stage, time.operation}];
    of.stage = time.stage;
    of.operation = time.operation;
    return of;
  };
  for (const OperationTime& time : before) {
    OperationDifference& of = difference_of(time);
    of.tasks_before += time.tasks;
    of.before += time.time;
  }
  for (const OperationTime& time : after) {
    OperationDifference& of = difference_of(time);
    of.tasks_after += time.tasks;
    of.after += time.time;
  }
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
