// What a step loses to the slowest of its ranks: devices of one kind differ in speed.
#pragma once

#include "model/cost/breakdown.h"
#include "model/plan/plan.h"
#include "model/units.h"
#include "model/workload/stack.h"

namespace trainyard {

// How many times as long kernels take on the slowest of the plan's ranks as on one of mean speed:
// 1 + rank_spread · (expected maximum of N standard normal variables).
double slowest_rank_factor(const Stack& stack, const Plan& plan);
// What the slowest rank adds to a step of these parts: its kernels take longer, and so does the
// bubble, whose length they set; exposed communication does not.
Seconds lost_to_slowest_rank(const Stack& stack, const Plan& plan, const Breakdown& parts);

}  // namespace trainyard
