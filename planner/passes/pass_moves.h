// Local search over pass lists: single passes move to other places in their stage's list. Internal
// to planner/passes.
#pragma once

#include <functional>
#include <optional>

#include "model/schedule/schedule.h"
#include "planner/passes/pass_order.h"

namespace trainyard {

// Time of the step: its longest span, or its makespan under a barrier. Nothing where the lists
// deadlock.
std::optional<Seconds> played_time(const PassOrderProblem& problem, const PassList& passes);

// Moves one or two passes of `order` at a time, while `goes_on`, and keeps what is not slower:
// moves that gain nothing lead out of the local optima of list scheduling. Stops at `order.bound`.
void move_passes(const PassOrderProblem& problem, const std::function<bool()>& goes_on,
                 PassOrder& order);

}  // namespace trainyard
