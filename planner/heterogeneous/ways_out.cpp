#include "planner/heterogeneous/ways_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/interrupted.h"
#include "planner/findings/ways_out.h"
#include "planner/heterogeneous/team.h"

namespace trainyard {
namespace {

class WaySearch {
 public:
  WaySearch(const GroupedJob& job, GroupSearchOptions options)
      : job_(job), options_(std::move(options)) {
    options_.second.reset();
    options_.progress = nullptr;
    options_.finds_closest = false;
  }

  void free_keys() {
    for (Freedom& freedom : freedoms_of_any()) {
      GroupSearchOptions freer = options_;
      freer.space = std::move(freedom.options.space);
      freer.layers_per_stage = std::move(freedom.options.base.layers_per_stage);
      add(std::move(freedom.change), job_, freer);
    }
  }

  void halve_batch() {
    if (job_.training.global_batch % 2 != 0) return;
    GroupedJob smaller = job_;
    smaller.training.global_batch /= 2;
    add(fmt::format("a global batch of {}", smaller.training.global_batch), smaller, options_);
  }

  void add_nodes(std::size_t group) {
    const Cluster& own = job_.cluster.groups[group];
    for (int times = 2; times <= kMostTimesNodes; times *= 2) {
      GroupedJob larger = job_;
      Cluster& grown = larger.cluster.groups[group];
      grown.nodes = times * own.nodes;
      if (!connects(grown)) continue;
      const bool fits =
          add(fmt::format("{} nodes of {} instead of {}", grown.nodes, own.name, own.nodes), larger,
              options_);
      if (fits) return;
    }
  }

  std::vector<GroupedWayOut> cheapest() {
    return cheapest_distinct(std::move(ways_),
                             [](const GroupedWayOut& way, const GroupedWayOut& other) {
                               return same_plan(way.plan, other.plan);
                             });
  }

 private:
  // The freedoms of any group: what may lie on the hosts depends on the group.
  std::vector<Freedom> freedoms_of_any() const {
    const SearchOptions searched{.space = options_.space,
                                 .base = {.layers_per_stage = options_.layers_per_stage}};
    std::vector<Freedom> all;
    for (const Cluster& group : job_.cluster.groups) {
      for (Freedom& freedom : freedoms({job_.model, group, job_.training}, searched)) {
        if (std::ranges::find(all, freedom.change, &Freedom::change) != all.end()) continue;
        all.push_back(std::move(freedom));
      }
    }
    return all;
  }

  // Whether a plan fits.
  bool add(std::string change, const GroupedJob& job, const GroupSearchOptions& options) {
    if (is_set(options_.interrupted)) return false;
    const std::vector<GroupedPlan> plans = in_order(plan_groups(job, options));
    if (plans.empty()) return false;
    const GroupedPlan& best = plans.front();
    int devices = 0;
    for (const std::size_t g : best.order) devices += job.cluster.groups[g].devices();
    const auto tokens =
        static_cast<double>(job.training.global_batch * job.training.sequence_length);
    ways_.push_back({std::move(change), best, best.step_time.value() * devices / tokens});
    return true;
  }

  const GroupedJob& job_;
  GroupSearchOptions options_;
  std::vector<GroupedWayOut> ways_;
};

}  // namespace

std::vector<GroupedWayOut> ways_out_of_groups(const GroupedJob& job,
                                              const GroupSearchOptions& options) {
  WaySearch search(job, options);
  search.free_keys();
  search.halve_batch();
  for (std::size_t g = 0; g < job.cluster.groups.size(); ++g) search.add_nodes(g);
  return search.cheapest();
}

}  // namespace trainyard
