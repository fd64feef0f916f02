// The orders of the ranks that put some group elsewhere: dimensions of one rank may stand anywhere
// in `rank_order` without any effect, so only the others change places (handbook §1).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// Those of a plan but for its own, each once.
std::vector<std::string> other_rank_orders(const Plan& plan);

// Whether this is software, with its limits: what names neither schedules nor offload might have
// anything.
bool is_software(const Stack& stack);
// Whether the stack is known to lay the plan's ranks out so.
bool runs_order(const Job& job, const Plan& plan);
// Whether experts leave the replicas that Megatron-Core asks for under this order: where the
// pipeline is not laid out last, as many as the rest of the network. It gives a dense network
// experts of the tensor-parallel ranks.
bool leaves_replicas(const Transformer& model, const Plan& plan, std::string_view order);

}  // namespace trainyard
