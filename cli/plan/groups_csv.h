// `trainyard plan` and `estimate --format csv` of a cluster with groups of unlike nodes: a row for
// what each group does under each plan, then one for each group that no plan can use.
#pragma once

#include <string>
#include <vector>

#include "planner/heterogeneous/groups.h"
#include "scenarios/scenario.h"

namespace trainyard {

// Where none is given the closest to fitting. Behind the figures of each plan what was minimised,
// whether the search came to its end and else the gap; and, where the plans were ordered by it
// (`robust`), the robust step time.
std::string plan_groups_csv(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                            const GroupedPlans& found, bool robust);

std::string estimate_groups_csv(const Scenario& scenario, const GroupedPlan& plan);

}  // namespace trainyard
