// One plan for the nodes of several groups as if they were alike: every rank does the same work,
// and all wait for the slowest. This is slower than dealing out the work where the groups differ
// much, but every dimension of a search is open to it, and it is the best where they differ little.
//
// Assumes: each part of the step (model/cost/estimate.h, Breakdown) takes as long as it does for
// the slowest group in that part, in a cluster that has all nodes of that group's kind; the network
// is the narrowest of those of the groups and the boundary, wherever the ranks of a group lie. The
// result is an upper bound of the step.
#pragma once

#include <optional>

#include "planner/heterogeneous/front.h"
#include "planner/heterogeneous/group_watch.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

// Searches once for each group as pacemaker, in a cluster that has all nodes of its kind, and
// returns the best plan found; nothing where none fits every group.
std::optional<GroupedPlan> find_together(const GroupedJob& job, GroupWatch& watch);
// For two objectives: offers all plans that these searches find.
void find_together(const GroupedJob& job, GroupWatch& watch, GroupedFront& front);

// Of the plans that these searches find, the one that misses the memory of the groups by the least.
std::optional<GroupedPlan> closest_together(const GroupedJob& job, GroupWatch& watch);

// Prices a plan that is named. Errors are as in planner/heterogeneous/request.h.
Expected<GroupedPlan> price_together(const GroupedJob& job, const PlanRequest& request,
                                     const GroupSearchOptions& options);

}  // namespace trainyard
