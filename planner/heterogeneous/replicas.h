// Replicas of the whole network on every group of unlike nodes, each with as many micro-batches as
// let all groups end together, or where energy is minimised more on those that draw less. Under the
// assumptions of planner/heterogeneous/groups.h; even layers unless others are named.
#pragma once

#include <optional>

#include "planner/heterogeneous/front.h"
#include "planner/heterogeneous/group_watch.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

// The best that fits over the degrees of the space that every group can have: tensor parallelism
// inside the node, stages inside the smallest group; or nothing, where none has a value below
// `worth`.
std::optional<GroupedPlan> find_replicas(const GroupedJob& job, GroupWatch& watch, double worth);

// Of two objectives: offers the best split of each of these degrees, under less and less memory
// where that is one of the two; and from those on the front, the ones that moved micro-batches make
// of them.
void find_replicas(const GroupedJob& job, GroupWatch& watch, GroupedFront& front);

// Replicas of one group, as a request names them.
struct NamedReplicas {
  PlanRequest request;  // of the group; nothing of the whole cluster
  int microbatches = 1;
};
// Replicas on all groups, with micro-batches and recomputation that are named. Error: of a group
// whose nodes cannot have them.
Expected<GroupedPlan> price_replicas(const GroupedJob& job,
                                     const std::vector<NamedReplicas>& groups,
                                     const GroupSearchOptions& options = {});

// Whether there are such degrees, legal or not; where the space names sharding groups, legal ones
// with one of these.
bool has_replicas(const GroupedJob& job, const GroupSearchOptions& options);

}  // namespace trainyard
