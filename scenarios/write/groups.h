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

// "pipeline", "replicas", "together", "alone".
std::string_view name_of(GroupUse use);

// The groups that no plan can use: their devices do not compute in the precision of the training.
std::vector<std::size_t> groups_without_precision(const Scenario& scenario);

// Why nothing that may be chosen (the planner section, pinned keys) is left of a way to use the
// groups; no full stop.
std::string reason_of(const Scenario& scenario, const LeftOutWay& way);

// `plans`: those of `found` to be shown, best first.
std::string groups_json(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                        const GroupedPlans& found, const GroupedFindings& findings = {});

// `trainyard estimate`: the keys of a like cluster's, null where groups have no figure in common,
// and the plan as the only entry of `plans`; fits or not.
std::string grouped_estimate_json(const Scenario& scenario, const UnlikeAnswer& answer);

}  // namespace trainyard
