// Plans for groups of unlike nodes as JSON (`trainyard plan` of a cluster with `groups`).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/heterogeneous/findings.h"
#include "planner/heterogeneous/groups.h"
#include "scenarios/scenario.h"
#include "scenarios/unlike_answer.h"

namespace trainyard {

// The use as JSON has it: "pipeline", "replicas", "together", "alone".
std::string_view name_of(GroupUse use);

// The groups that no plan can use, because their devices do not compute in the training's
// precision.
std::vector<std::size_t> groups_without_precision(const Scenario& scenario);

// Why the planner section and the pinned keys leave no plan for a way to use the groups; without
// full stop.
std::string reason_of(const Scenario& scenario, const LeftOutWay& way);

// `plans`: the plans of `found` that are to be shown, best first.
std::string groups_json(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                        const GroupedPlans& found, const GroupedFindings& findings = {});

// The output of `trainyard estimate` for groups: the same keys as for like nodes, null where groups
// have no common figure, and the plan as the only entry of `plans`, whether it fits or not.
std::string grouped_estimate_json(const Scenario& scenario, const UnlikeAnswer& answer);

}  // namespace trainyard
