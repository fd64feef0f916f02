// A pipeline through all groups of unlike nodes of a job: which group takes which stages, and how
// many layers each of them. Under the assumptions of planner/heterogeneous/groups.h.
#pragma once

#include <optional>
#include <vector>

#include "planner/heterogeneous/front.h"
#include "planner/heterogeneous/group_watch.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedPipelines {
  std::optional<GroupedPlan> best;  // that fits
  std::optional<GroupedPlan> even;  // of its degrees, with even layers and one recomputation
};

// The best over all degrees of the space that every group can have (tensor parallelism inside the
// node) and all orders of the groups; or nothing, where none has a value below `worth`.
GroupedPipelines find_pipelines(const GroupedJob& job, GroupWatch& watch, double worth);

// Of two objectives: offers the pipelines of all these degrees and orders, with layers and
// recomputation dealt under less and less memory where that is one of the two; and from those on
// the front, the ones that a moved layer makes of them.
void find_pipelines(const GroupedJob& job, GroupWatch& watch, GroupedFront& front);

// The one that misses the memory by the least, where none fits; under the same options but for the
// objective.
std::optional<GroupedPlan> closest_pipeline(const GroupedJob& job, GroupWatch& watch);

// Whether there are such degrees, legal or not; where the space names sharding groups, legal ones
// with one of these.
bool has_pipelines(const GroupedJob& job, const GroupSearchOptions& options);

// A pipeline with the layers and the recomputation that `request` names, its stages on the groups
// in this order; worth what the options say. Requires: the request is legal on every group's nodes.
GroupedPlan price_pipeline(const GroupedJob& job, const PlanRequest& request,
                           const std::vector<std::size_t>& order,
                           const GroupSearchOptions& options = {});

}  // namespace trainyard
