// Gradients of parameters of which two stages of a pipeline hold a copy each: the embedding where
// the output head is tied to it or MTP layers use it (first and last stage), and every layer where
// micro-batches go both ways (model/schedule/kinds/dualpipe.cpp). The copies' gradients are added
// up by an all-reduce between the two stages; nothing is overlapped.
#pragma once

#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// Time of these all-reduces on one stage, once a step.
Seconds time_between_copies(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                            const StageParameters& stage);

}  // namespace trainyard
