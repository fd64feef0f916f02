// Gradients of parameters of which two stages of a pipeline hold a copy each: the embedding where
// the output head is tied to it or MTP layers use it (first and last stage), and every layer where
// micro-batches go both ways (model/schedule/kinds/dualpipe.cpp). The copies' gradients are added
// up by an all-reduce between the two stages. (What of that is hidden: data_parallel.cpp.)
#pragma once

#include "model/cost/messages/traffic.h"
#include "model/cost/sharding/stage_parameters.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

// The links between the first and the last stage of a pipeline while all other stages are silent.
GroupLinks ends_of_pipeline(const PlanLinks& links);

// Time of these all-reduces on one stage, once a step.
struct CopySums {
  Seconds ends;     // of a tied embedding
  Seconds mirrors;  // of all that a stage of DualPipe holds
};
CopySums sums_of_copies(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                        const StageParameters& stage);

}  // namespace trainyard
