// Time that the communication of data parallelism takes for one stage in one step (handbook §9),
// with nothing overlapped.
#pragma once

#include "model/cost/sharding/data_parallel.h"
#include "model/cost/sharding/overlap.h"

namespace trainyard {

// Adds up the collectives of a step. ZeRO 3 gathers the weights twice per micro-batch (forward and
// backward) and reduces the gradients once per micro-batch. Stage 2 reduces the gradients once per
// micro-batch, stages 0 and 1 once per step. DualPipe holds two copies of the layers, and a
// micro-batch passes only one of them, so each copy sees half of the micro-batches.
inline Seconds data_parallel_traffic(const PreparedJob& job, const Plan& plan,
                                     const PlanLinks& links, const StageParameters& stage) {
  const ParameterTraffic once = parameter_traffic(job, plan, links, stage);
  const double copies = plan.schedule->route == Route::both_ways ? 2 : 1;
  const double times = plan.microbatches / copies;
  if (plan.zero_stage == 3) return (2 * once.gather + once.reduce) * times;
  return once.gather + once.reduce * (plan.zero_stage == 2 ? times : 1.0);
}

// Traffic of one group's rings.
inline DataTraffic ring_of(const GroupLinks& group) {
  const LinksInUse ring{group, ring_use(group)};
  return {ring, ring};
}

}  // namespace trainyard
