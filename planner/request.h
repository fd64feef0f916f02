// Turns a complete plan back into the request that gives it: the starting point of every "what if
// this key were different".
#pragma once

#include "model/plan/plan.h"

namespace trainyard {

// Requires: `plan` comes from make_plan. make_plan(request_of(plan)) gives the plan again.
PlanRequest request_of(const Plan& plan);

}  // namespace trainyard
