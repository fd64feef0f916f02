// When no plan fits on groups of unlike nodes: what to change, each change with the best plan that
// it allows, as planner/findings/ways_out.h does for one cluster.
#pragma once

#include <string>
#include <vector>

#include "planner/heterogeneous/groups.h"

namespace trainyard {

struct GroupedWayOut {
  std::string change;                   // "2 nodes of dgx-a100-80gb instead of 1"
  GroupedPlan plan;                     // the best that fits after the change
  double device_seconds_per_token = 0;  // all devices of the groups at work
};

// The three ways out with the fewest device-seconds a token: more nodes of one group (doubled until
// a plan fits), half of the global batch, and what the search was not allowed. Each is a search of
// its own, and a plan that several ways lead to stands once, under the narrowest.
std::vector<GroupedWayOut> ways_out_of_groups(const GroupedJob& job,
                                              const GroupSearchOptions& options);

}  // namespace trainyard
