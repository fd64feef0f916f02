// Searches a pipeline through all groups of unlike nodes of a job: which group takes which stages,
// and how many layers each stage has. Assumes what planner/heterogeneous/groups.h says.
#pragma once

#include <optional>
#include <vector>

#include "planner/heterogeneous/front.h"
#include "planner/heterogeneous/group_watch.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedPipelines {
  std::optional<GroupedPlan> best;  // the best that fits
  std::optional<GroupedPlan> even;  // with its degrees, even layers and one recomputation
};

// The best over all orders of the groups and all degrees of the space that every group can have
// (tensor parallelism inside the node); nothing where no plan has a value below `worth`.
GroupedPipelines find_pipelines(const GroupedJob& job, GroupWatch& watch, double worth);

// For two objectives: offers the pipelines of all these degrees and orders. Where memory is an
// objective, layers and recomputation are dealt under less and less of it. Then moves single layers
// of the plans on the front, and offers what that makes.
void find_pipelines(const GroupedJob& job, GroupWatch& watch, GroupedFront& front);

// Where none fits: the pipeline that misses the memory by the least, whatever the objective.
std::optional<GroupedPlan> closest_pipeline(const GroupedJob& job, GroupWatch& watch);

// Whether the space has degrees for such a pipeline, legal or not; where it names sharding groups,
// whether it has legal ones with one of these.
bool has_pipelines(const GroupedJob& job, const GroupSearchOptions& options);

// Prices a pipeline with the layers and the recomputation that `request` names, and with stages on
// the groups in this order, by the options. Requires: the request is legal on every group's nodes.
GroupedPlan price_pipeline(const GroupedJob& job, const PlanRequest& request,
                           const std::vector<std::size_t>& order,
                           const GroupSearchOptions& options = {});

}  // namespace trainyard
