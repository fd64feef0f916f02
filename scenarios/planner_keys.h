// Single keys of a scenario's `planner` section, as options of a command line give them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/plan/plan.h"
#include "scenarios/scenario.h"

namespace trainyard {

// The keys that a plan has too; sizes and the deadline, for example, are not among them.
std::vector<std::string> planner_keys_of_plan();

// `keys` with `key` set to `value` (JSON, or text without quotes). Errors name `name` as the
// document.
Expected<PlannerKeys> with_planner_key(const PlannerKeys& keys, const std::string& key,
                                       std::string_view value, const std::string& name);

}  // namespace trainyard
