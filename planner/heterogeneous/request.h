// Prices a plan for groups of unlike nodes that a document names, without a search. Assumes what
// planner/heterogeneous/groups.h says.
#pragma once

#include <vector>

#include "model/expected.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedRequest {
  GroupUse use = GroupUse::pipeline;
  std::vector<std::size_t> order;  // the groups at work; of a pipeline in the order of its stages
  PlanRequest plan;                // `data_parallel`: the replicas of all groups
  // For replicas only, one entry for each group of `order`.
  std::vector<int> microbatches;           // of each replica
  std::vector<RecomputeChoice> recompute;  // empty: as the plan has it
};

// The request that price_grouped makes the same plan of.
GroupedRequest request_of(const GroupedPlan& found);

// The options value the plan; their space is ignored. Errors carry the pointer of the key in a
// document (`/plan`, `/use_of_groups`), what was found and what is allowed.
Expected<GroupedPlan> price_grouped(const GroupedJob& job, const GroupedRequest& request,
                                    const GroupSearchOptions& options = {});

}  // namespace trainyard
