// Lower bounds that know no plan: what all devices must hold and how fast any step can be.
// Admissible for every cost model that keeps the states of handbook §7 and stays under the
// datasheet's peak.
#pragma once

#include <vector>

#include "model/job.h"
#include "planner/offered.h"
#include "planner/planner.h"

namespace trainyard {

// Parameters of the whole job, by how they are sharded.
struct ParameterShares {
  double dense = 0;    // over t and p
  double experts = 0;  // over e, e_t and p
};
ParameterShares parameter_shares(const PreparedJob& job);

// No plan has a lower objective: model FLOP (causal attention) at the peak of all devices, and the
// states spread over all of them, without those that `offload` sends elsewhere. 0 where nothing is
// known (energy). `computed`: the share of the FLOP that is left where experts drop tokens.
double objective_bound(const PreparedJob& job, const ParameterShares& shares, Objective objective,
                       const Offload& offload, double computed = 1);
// The same of a search that may choose among `offloads`.
double objective_bound(const PreparedJob& job, const ParameterShares& shares, Objective objective,
                       const std::vector<SearchedOffload>& offloads, double computed = 1);

}  // namespace trainyard
