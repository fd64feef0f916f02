// Replicas of the whole network on every group of unlike nodes, each with as many micro-batches as
// let all groups end together, or where energy is minimised more on those that draw less. Under the
// assumptions of planner/unlike_groups.h; even layers unless others are named.
#pragma once

#include <optional>

#include "planner/group_watch.h"
#include "planner/unlike_groups.h"

namespace trainyard {

// The best that fits over the degrees of the space that every group can have: tensor parallelism
// inside the node, stages inside the smallest group.
std::optional<GroupedPlan> find_replicas(const GroupedJob& job, GroupWatch& watch);

// Whether there are such degrees, legal or not.
bool has_replicas(const GroupedJob& job, const GroupSearchOptions& options);

}  // namespace trainyard
