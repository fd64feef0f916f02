// Some of the groups of a cluster of unlike nodes, as a cluster of their own.
#pragma once

#include <vector>

#include "model/cost/estimate.h"
#include "planner/unlike_groups.h"

namespace trainyard {

using Members = std::vector<std::size_t>;

// All choices of two groups or more, the larger first.
std::vector<Members> teams_of(std::size_t groups);

// Of a group whose every device takes part in the whole plan: alone, in replicas, or as one
// cluster.
GroupShare share_of_whole(const PreparedJob& job, const Plan& plan, const Estimate& priced);

int nodes_of_all(const GroupedJob& job);

GroupedJob job_of(const GroupedJob& job, const Members& members);

// A plan for these members as one for all groups: the others stand idle.
GroupedPlan of_all(GroupedPlan plan, const Members& members, std::size_t groups);

}  // namespace trainyard
