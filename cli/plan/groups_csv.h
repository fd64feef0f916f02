// `trainyard plan` and `estimate --format csv` for a cluster with groups of unlike nodes: a row for
// what each group does under each plan, then one for each group that no plan can use.
#pragma once

#include <string>
#include <vector>

#include "planner/heterogeneous/groups.h"
#include "scenarios/scenario.h"

namespace trainyard {

// If `plans` is empty, the rows are the plans closest to fitting. After the figures of each plan
// follow the objective, whether the search was complete, the gap, and with `robust` the robust step
// time.
std::string plan_groups_csv(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                            const GroupedPlans& found, bool robust);

std::string estimate_groups_csv(const Scenario& scenario, const GroupedPlan& plan);

}  // namespace trainyard
