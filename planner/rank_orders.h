// The orders of the ranks that put some group elsewhere: dimensions of one rank may stand anywhere
// in `rank_order` without any effect, so only the others change places (handbook §1).
#pragma once

#include <string>
#include <vector>

#include "model/plan/plan.h"
#include "model/workload/stack.h"

namespace trainyard {

// Those of a plan but for its own, each once.
std::vector<std::string> other_rank_orders(const Plan& plan);

// Whether this is software, with its limits: what names neither schedules nor offload might have
// anything.
bool is_software(const Stack& stack);
// Whether the stack is known to lay the plan's ranks out so.
bool runs_order(const Stack& stack, const Plan& plan);

}  // namespace trainyard
