// Lower bounds that hold for every plan of a job: together the devices compute the batch's model
// FLOP and hold each state once. Admissible for every cost model that counts the states of handbook
// §7 and stays under the datasheet's peak. Example: a step of 1e21 FLOP takes at least 1 s on 1,000
// devices of 1e15 FLOP/s.
#pragma once

#include <vector>

#include "model/job.h"
#include "planner/offered.h"
#include "planner/planner.h"

namespace trainyard {

// Numbers of parameters of the whole network, by the degrees that shard them.
struct ParameterShares {
  double dense = 0;    // sharded over t and p
  double experts = 0;  // sharded over e, e_t and p
};
ParameterShares parameter_shares(const PreparedJob& job);

// No plan has a lower objective. Times and cost are those of the model FLOP (attention causal) at
// the peak of all devices, step ≥ 3·computed·B·(forward FLOP of a sequence)/(peak·devices); memory
// is that of the states spread over all devices, without those that `offload` moves off them. 0
// where nothing is known (energy). `computed`: the share of the FLOP left where experts drop
// tokens.
double objective_bound(const PreparedJob& job, const ParameterShares& shares, Objective objective,
                       const Offload& offload, double computed = 1);
// The least of these bounds over `offloads`, for a search that may choose among them.
double objective_bound(const PreparedJob& job, const ParameterShares& shares, Objective objective,
                       const std::vector<SearchedOffload>& offloads, double computed = 1);

}  // namespace trainyard
