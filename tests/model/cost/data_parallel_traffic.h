// What a stage's parameters take on the wire in one step (handbook §9), nothing overlapped.
#pragma once

#include "model/cost/sharding/data_parallel.h"

namespace trainyard {

// ZeRO 3 gathers weights for both passes of every micro-batch and reduces its gradients, stage 2
// reduces those of every one, the others once a step. Of the two copies of the layers that DualPipe
// holds a micro-batch meets one.
inline Seconds data_parallel_traffic(const PreparedJob& job, const Plan& plan,
                                     const PlanLinks& links, const StageParameters& stage) {
  const ParameterTraffic once = parameter_traffic(job, plan, links, stage);
  const double copies = plan.schedule->route == Route::both_ways ? 2 : 1;
  const double times = plan.microbatches / copies;
  if (plan.zero_stage == 3) return (2 * once.gather + once.reduce) * times;
  return once.gather + once.reduce * (plan.zero_stage == 2 ? times : 1.0);
}

}  // namespace trainyard
