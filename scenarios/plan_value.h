// A plan as the JSON object of a document's `plan`, and one for groups of unlike nodes.
#pragma once

#include <optional>

#include "model/plan/plan.h"
#include "planner/heterogeneous/groups.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

// Every key, so that it reads back to the same plan under any defaults.
// Requires: `plan` comes from make_plan.
Json plan_value(const Plan& plan);

// An entry of group-plans/1: how the groups are used, the plan, and the share of each.
// `carbon_intensity`: g of CO2 a joule.
Json grouped_plan_value(const UnlikeCluster& cluster, const GroupedPlan& plan,
                        const std::optional<double>& carbon_intensity);

}  // namespace trainyard
