// Some of the groups of a cluster of unlike nodes, as a cluster of their own.
#pragma once

#include <vector>

#include "planner/unlike_groups.h"

namespace trainyard {

using Members = std::vector<std::size_t>;

// All choices of two groups or more, the larger first.
std::vector<Members> teams_of(std::size_t groups);

GroupedJob job_of(const GroupedJob& job, const Members& members);

// A plan for these members as one for all groups: the others stand idle.
GroupedPlan of_all(GroupedPlan plan, const Members& members, std::size_t groups);

}  // namespace trainyard
