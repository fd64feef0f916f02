// One plan for the nodes of several groups as if they were alike: every rank has as much to do, and
// all wait for the slowest. Slower than dealing the work out where the groups differ much, but
// every dimension of a search is open to it, and it is the best where they differ little.
//
// Assumes: of each part of a step (model/cost/estimate.h, Breakdown) the group decides that takes
// the longest for it in a cluster of all nodes made of its own; the network is the narrowest of the
// groups' and the boundary, wherever the ranks of a group lie. An upper bound of what such a step
// takes.
#pragma once

#include <optional>

#include "planner/heterogeneous/front.h"
#include "planner/heterogeneous/group_watch.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

// The best of the plans that are the best for one of the groups as pacemaker; nothing: none fits
// every group.
std::optional<GroupedPlan> find_together(const GroupedJob& job, GroupWatch& watch);
// Of two objectives all that such searches find.
void find_together(const GroupedJob& job, GroupWatch& watch, GroupedFront& front);

// Of those that miss the memory of each group as pacemaker by the least, the one that does of all.
std::optional<GroupedPlan> closest_together(const GroupedJob& job, GroupWatch& watch);

// One that is named. Errors as in planner/heterogeneous/request.h.
Expected<GroupedPlan> price_together(const GroupedJob& job, const PlanRequest& request,
                                     const GroupSearchOptions& options);

}  // namespace trainyard
