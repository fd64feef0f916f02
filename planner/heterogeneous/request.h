// A plan for groups of unlike nodes that is named, as a document has it: priced, not searched.
// Under the assumptions of planner/heterogeneous/groups.h.
#pragma once

#include <vector>

#include "model/expected.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedRequest {
  GroupUse use = GroupUse::pipeline;
  std::vector<std::size_t> order;  // the groups at work; of a pipeline in the order of its stages
  PlanRequest plan;                // `data_parallel`: the replicas of all groups
  // Of replicas, one entry for each group of `order`.
  std::vector<int> microbatches;           // of each replica
  std::vector<RecomputeChoice> recompute;  // empty: as the plan has it
};

// What prices to the same plan again.
GroupedRequest request_of(const GroupedPlan& found);

// Worth what the options say; their space does not matter. Errors carry the pointer of the key in a
// document (`/plan`, `/use_of_groups`), what was found and what is allowed.
Expected<GroupedPlan> price_grouped(const GroupedJob& job, const GroupedRequest& request,
                                    const GroupSearchOptions& options = {});

}  // namespace trainyard
