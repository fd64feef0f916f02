// The largest faithful smaller run of a plan, for fewer ranks than it has: fewer replicas first,
// then fewer stages of the same layers. What a rank computes and sends inside a layer stays as it
// is; the global batch shrinks with the replicas, so that the micro-batches of a step stay.
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

// `request` is what `plan` was made of. Fails where one stage of one replica has too many ranks.
Expected<ScaledDown> scale_down(const Job& job, const PlanRequest& request, const Plan& plan,
                                int ranks);

}  // namespace trainyard
