// The answers of a search as JSON (estimate.h says the rules of all).
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

// `trainyard plan`: `plans`, `closest` (what misses the memory by the least, when nothing fits) and
// `shortfall` (what the first of them lacks), `improvement` (null: none was found), `baselines`,
// `marginal_values`, `ways_out`, `explained` (null: not asked), `notes`, `written` (null: no file
// was asked for) and `search`. `wall_time` counts from the start of the process.
std::string plan_json(const Scenario& scenario, const PreparedJob& job, const SearchResult& result,
                      const PlanFindings& findings, Seconds wall_time);

// The same for a scenario that asks for sizes: `objective`, `points`, and the places in it of the
// answers, of which null is none.
std::string capacity_json(const Scenario& scenario, const std::vector<CapacityPoint>& points,
                          Objective objective);

}  // namespace trainyard
