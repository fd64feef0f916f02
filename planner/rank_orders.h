// Orders of the ranks that put some process group on other ranks. A dimension of one rank may stand
// anywhere in `rank_order` without effect, so that only the others change places (handbook §1).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// The legal orders that differ from the plan's own, each once.
std::vector<std::string> other_rank_orders(const Plan& plan);

// Whether the stack describes software with its limits. One that names neither schedules nor
// offload is taken to run any order, group and offload.
bool is_software(const Stack& stack);
// Whether the stack is known to run the plan's order of the ranks.
bool runs_order(const Job& job, const Plan& plan);
// Whether Megatron-Core accepts the plan's experts under this order: unless the pipeline is the
// last dimension, experts must have as many replicas as the rest of the network, e·e_t = t·c. It
// gives a dense network experts over t ranks, so that c must be 1.
bool leaves_replicas(const Transformer& model, const Plan& plan, std::string_view order);

}  // namespace trainyard
