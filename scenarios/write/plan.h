// The results of a search as JSON (estimate.h states the rules of all output).
#pragma once

#include <string>
#include <vector>

#include "model/job.h"
#include "model/units.h"
#include "planner/findings/capacity.h"
#include "planner/findings/findings.h"
#include "planner/planner.h"
#include "scenarios/scenario.h"

namespace trainyard {

// The output of `trainyard plan`: `plans`; `closest`, the plans that exceed the memory by the
// least, if nothing fits; `shortfall`, what the first of these lacks; `improvement` (null: none
// found); `baselines`; `marginal_values`; `ways_out`; `explained` (null: not asked); `notes`;
// `written` (null: no file was asked for); `search`. `wall_time` counts from the start of the
// process.
std::string plan_json(const Scenario& scenario, const PreparedJob& job, const SearchResult& result,
                      const PlanFindings& findings, Seconds wall_time);

// The same for a scenario that asks for sizes: `objective`, `points`, and the indices in `points`
// of the answers (null: none).
std::string capacity_json(const Scenario& scenario, const std::vector<CapacityPoint>& points,
                          Objective objective);

}  // namespace trainyard
