// What a plan asks of a stack besides its orders of the ranks (planner/rank_orders.h): the software
// refuses other ZeRO stages and other numbers of repeated layers.
#pragma once

#include "model/plan/plan.h"
#include "model/workload/stack.h"
#include "planner/search_space.h"

namespace trainyard {

bool offers_zero_stage(const Stack& stack, int zero_stage, int pipeline_parallel);

// Of layers that a stage repeats the step from one number to the next; 0: all layers or none.
int repeated_layers_step(const Stack& stack, int virtual_stages);

// What every stage of the plan repeats.
bool offers_recompute(const Stack& stack, const Plan& plan);

// Whether a search may have it: the space names recomputations, or the stack offers it. And each
// stage its own.
bool may_repeat(const SearchSpace& space, const Stack& stack, const Plan& plan);
bool may_repeat_by_stage(const SearchSpace& space, const Stack& stack);

}  // namespace trainyard
