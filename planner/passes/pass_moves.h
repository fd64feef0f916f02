// Pass lists improved by moving single passes to other places of their stage's list. Internal to
// planner/passes.
#pragma once

#include <functional>
#include <optional>

#include "model/schedule/schedule.h"
#include "planner/passes/pass_order.h"

namespace trainyard {

// Time of the step, longest span or makespan; nothing where the lists deadlock.
std::optional<Seconds> played_time(const PassOrderProblem& problem, const PassList& passes);

// Tries changes of one or two passes, of `order`, while `goes_on`, and keeps what is not slower;
// sideways steps lead out of the places where list scheduling ends. Stops at `order.bound`.
void move_passes(const PassOrderProblem& problem, const std::function<bool()>& goes_on,
                 PassOrder& order);

}  // namespace trainyard
