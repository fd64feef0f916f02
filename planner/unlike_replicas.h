// Replicas of the whole network on every group of unlike nodes, each with as many micro-batches as
// let all groups end together. Under the assumptions of planner/unlike_groups.h; even layers.
#pragma once

#include <optional>

#include "planner/group_watch.h"
#include "planner/unlike_groups.h"

namespace trainyard {

// The best that fits over the degrees that every group can have: tensor parallelism inside the
// node, stages inside the smallest group, micro-batches of 1, 2 and 4.
std::optional<GroupedPlan> find_replicas(const GroupedJob& job, GroupWatch& watch);

}  // namespace trainyard
