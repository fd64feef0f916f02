// What 1 % more of each resource gains on groups of unlike nodes: the search is repeated on groups
// that have it, as planner/findings/marginal.h does for one cluster.
#pragma once

#include <string_view>
#include <vector>

#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedMarginalValue {
  std::string_view resource;  // "FLOP/s"
  double gained = 0;          // share of the objective, with `kMarginalShare` more on every group
  bool same_plan = true;      // whether the best plan stays the best
  // [group]: gained with more of it on this group alone; empty where no group owns the resource.
  std::vector<double> gained_by_group;
};

// Values of the resources of planner/findings/marginal.h, and of the bandwidth between groups where
// the cluster names it; never below zero. `winner`: the best plan found under these options, which
// fits. Each resource and group has a search of its own, for plans that beat the winner there.
// Empty once `options.interrupted`.
std::vector<GroupedMarginalValue> marginal_values(const GroupedJob& job,
                                                  const GroupSearchOptions& options,
                                                  const GroupedPlan& winner);

}  // namespace trainyard
