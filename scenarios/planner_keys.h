// Keys of a scenario's `planner` section one at a time, as a command line gives them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/plan/plan.h"
#include "scenarios/scenario.h"

namespace trainyard {

// Those that are keys of a plan too: no sizes, no deadline.
std::vector<std::string> planner_keys_of_plan();

// `keys` with one of these saying `value`, JSON or text without quotes, instead of what it said.
// An error has `name` as its document.
Expected<PlannerKeys> with_planner_key(const PlannerKeys& keys, const std::string& key,
                                       std::string_view value, const std::string& name);

}  // namespace trainyard
