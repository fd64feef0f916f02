// What the commands print and write as JSON (design §4): stable keys, SI numbers with the unit in
// the key, ratios and errors as fractions, null where something is unknown. Here an estimate.
#pragma once

#include <string>

#include "model/cost/estimate.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "scenarios/scenario.h"

namespace trainyard {

// `trainyard estimate`: every key of design §4, and the complete plan; `auto_schedule` where the
// scenario's schedule is `auto`: the `schedule` that it became (null: a found order, which `plan`
// has) and its `virtual_stages`.
std::string estimate_json(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                          const Estimate& estimate);

}  // namespace trainyard
