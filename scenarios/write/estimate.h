// The JSON of all commands (design §4) has stable keys, SI numbers with the unit in the key, ratios
// and errors as fractions, and null where something is unknown. This file: an estimate.
#pragma once

#include <string>

#include "model/cost/estimate.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "scenarios/scenario.h"

namespace trainyard {

// The output of `trainyard estimate`: every key of design §4 and the complete plan. If the
// scenario's schedule is `auto`, `auto_schedule` has the chosen `schedule` (null: an order that was
// found, which is in `plan`) and its `virtual_stages`.
std::string estimate_json(const Scenario& scenario, const PreparedJob& job, const Plan& plan,
                          const Estimate& estimate);

}  // namespace trainyard
