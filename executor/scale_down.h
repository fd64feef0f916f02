// The largest run that represents a plan on fewer ranks than it has. What a rank computes and sends
// inside a layer stays, and so does the number of micro-batches of a step; the global batch shrinks
// with the replicas. Reductions are tried in this order, each no further than a legal plan needs:
// 1. fewer replicas, in smaller sharding groups where the plan's do not divide them;
// 2. fewer stages of the same layers: those in the middle are left out;
// 3. 1F1B, where the plan's schedule cannot have so few stages;
// 4. fewer experts, as many on a rank as before.
// Each kept stage keeps the kinds of its layers (with experts or not, with a window or not). A
// network can state only certain orders of kinds; an attempt that would change some is the last
// resort, and `changes` says so.
#pragma once

#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

struct ScaledDown {
  Job job;
  PlanRequest request;
  std::vector<std::string> changes;  // "data_parallel 64 → 2"; empty: the plan fits as it is
};

// `request` is what `plan` was made of. Fails where one stage of one replica has more than `ranks`
// ranks, or where even the fewest experts need more.
Expected<ScaledDown> scale_down(const Job& job, const PlanRequest& request, const Plan& plan,
                                int ranks);

}  // namespace trainyard
