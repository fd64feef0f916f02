// What people do with groups of unlike nodes without a planner, as a yardstick: the plans of
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
  Expected<GroupedPlan> plan;  // fit or not; an error: none is legal
};

// The rule of thumb, plain DDP and plain FSDP, on the groups whose devices compute in the precision
// of the training; worth what the options say, their space does not matter. None: no group does.
std::vector<GroupedBaseline> baselines_of(const GroupedJob& job, const GroupSearchOptions& options);

}  // namespace trainyard
