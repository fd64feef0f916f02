// A plan as the JSON object of a document's `plan`, and a plan for groups of unlike nodes as JSON.
#pragma once

#include <optional>

#include "model/plan/plan.h"
#include "planner/heterogeneous/groups.h"
#include "scenarios/json/json_document.h"

namespace trainyard {

// The plan with every key written, so that it reads back the same whatever the defaults are.
Json plan_value(const Plan& plan);

// An entry of group-plans/1: how the groups are used, the plan, and each group's share.
// `carbon_intensity`: g of CO2 a joule.
Json grouped_plan_value(const UnlikeCluster& cluster, const GroupedPlan& plan,
                        const std::optional<double>& carbon_intensity);

}  // namespace trainyard
