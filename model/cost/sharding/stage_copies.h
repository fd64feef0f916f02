// Gradients of parameters that two stages of a pipeline hold copies of: a tied embedding, or that
// of MTP layers, at both its ends, and every layer where micro-batches go both ways
// (model/schedule/kinds/dualpipe.cpp).
#pragma once

#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// Once a step, to add them up between the two: seconds.
Seconds time_between_copies(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                            const StageParameters& stage);

}  // namespace trainyard
