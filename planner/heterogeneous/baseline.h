// Baselines for groups of unlike nodes, what people use without a planner: the plans of
// planner/findings/baseline.h over all nodes as if they were alike
// (planner/heterogeneous/together.h).
#pragma once

#include <string_view>
#include <vector>

#include "model/expected.h"
#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedBaseline {
  std::string_view name;
  Expected<GroupedPlan> plan;  // feasible or not; an error: no such plan is legal
};

// The rule of thumb, plain DDP and plain FSDP, on the groups whose devices compute in the precision
// of the training; empty where no group does. The options value the plans; their space is ignored.
std::vector<GroupedBaseline> baselines_of(const GroupedJob& job, const GroupSearchOptions& options);

}  // namespace trainyard
