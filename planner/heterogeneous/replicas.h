// Searches replicas of the whole network on every group of unlike nodes. Each replica has as many
// micro-batches as let all groups end together; where energy is minimised, groups that draw less
// have more. Assumes what planner/heterogeneous/groups.h says; layers are even unless named.
#pragma once

#include <optional>

#include "planner/heterogeneous/front.h"
#include "planner/heterogeneous/group_watch.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

// The best that fits over the degrees of the space that every group can have: tensor parallelism
// inside the node, a replica's stages inside the smallest group. Nothing where none has a value
// below `worth`.
std::optional<GroupedPlan> find_replicas(const GroupedJob& job, GroupWatch& watch, double worth);

// For two objectives: offers the best split of the batch for each of these degrees, under less and
// less memory where that is an objective. Then moves micro-batches between groups in the plans on
// the front, and offers what that makes.
void find_replicas(const GroupedJob& job, GroupWatch& watch, GroupedFront& front);

// Replicas of one group, as a request names them.
struct NamedReplicas {
  PlanRequest request;  // of this group alone
  int microbatches = 1;
};
// Prices replicas on all groups, with micro-batches and recomputation that are named. An error
// comes from a group whose nodes cannot have them.
Expected<GroupedPlan> price_replicas(const GroupedJob& job,
                                     const std::vector<NamedReplicas>& groups,
                                     const GroupSearchOptions& options = {});

// Whether the space has degrees for such replicas, legal or not; where it names sharding groups,
// whether it has legal ones with one of these.
bool has_replicas(const GroupedJob& job, const GroupSearchOptions& options);

}  // namespace trainyard
