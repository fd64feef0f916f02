// What a little more of each resource is worth on groups of unlike nodes: the search again on
// groups that have it, as planner/findings/marginal.h has it of one cluster.
#pragma once

#include <string_view>
#include <vector>

#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedMarginalValue {
  std::string_view resource;  // "FLOP/s"
  double gained = 0;          // share of the objective, with `kMarginalShare` more on every group
  bool same_plan = true;      // the best plan stays the best
  // With more of it on this group alone; empty: it is not a group's own.
  std::vector<double> gained_by_group;
};

// The resources of planner/findings/marginal.h, and the bandwidth between groups where the cluster
// names it; never below zero. `winner`: the best plan that was found under these options, fit. A
// search for each resource and group, of plans that are better than the winner with as much; until
// `options.interrupted`: then nothing.
std::vector<GroupedMarginalValue> marginal_values(const GroupedJob& job,
                                                  const GroupSearchOptions& options,
                                                  const GroupedPlan& winner);

}  // namespace trainyard
