// The largest faithful smaller run of a plan, for fewer ranks than it has. What a rank computes and
// sends inside a layer stays as it is, and so does the number of micro-batches of a step: the
// global batch shrinks with the replicas. Tried in this order, and of each the most that is a legal
// plan: fewer replicas, in smaller sharding groups where theirs do not divide them; fewer stages of
// the same layers, those in the middle left out; another order of passes, where the schedule cannot
// have so few stages; fewer experts, as many on a rank as before. Each stage keeps its layers'
// kinds (with experts or not, with a window or not): an attempt whose layers would be of other
// kinds, for these follow one another in a fixed order, is left for when there is no other, and
// noted.
#pragma once

#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

struct ScaledDown {
  Job job;
  PlanRequest request;
  std::vector<std::string> changes;  // "data_parallel 64 → 2"; none: it fits as it is
};

// `request` is what `plan` was made of. Fails where one stage of one replica has too many ranks, or
// its experts have, however few of them there are.
Expected<ScaledDown> scale_down(const Job& job, const PlanRequest& request, const Plan& plan,
                                int ranks);

}  // namespace trainyard
