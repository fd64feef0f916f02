// Plans for groups of unlike nodes as JSON (`trainyard plan` of a cluster with `groups`).
#pragma once

#include <string>
#include <vector>

#include "planner/unlike_groups.h"
#include "scenarios/scenario.h"

namespace trainyard {

// "pipeline", "replicas", "alone".
std::string_view name_of(GroupUse use);

// The groups that no plan can use: their devices do not compute in the precision of the training.
std::vector<std::size_t> groups_without_precision(const Scenario& scenario);

// `plans`: those of `found` to be shown, fastest first.
std::string groups_json(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                        const GroupedPlans& found);

}  // namespace trainyard
