// A plan as the JSON object of a document's `plan`.
#pragma once

#include "model/plan/plan.h"
#include "scenarios/json_document.h"

namespace trainyard {

// Every key, so that it reads back to the same plan under any defaults.
// Requires: `plan` comes from make_plan.
Json plan_value(const Plan& plan);

}  // namespace trainyard
