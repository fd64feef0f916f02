// What one stage of a pipeline costs: its passes of one micro-batch, by part, and what it adds to
// the ends of a step.
#pragma once

#include "model/cost/breakdown.h"
#include "model/cost/chunk_passes.h"
#include "model/cost/kernel_times.h"
#include "model/cost/layer_cost.h"
#include "model/cost/memory/memory.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/priced_messages.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/slack.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

struct StageEstimate {
  StageMemory memory;
  PassTimes passes;   // of one micro-batch, sends and exposed communication included
  Breakdown exposed;  // `passes` by part, forward and backward together
  Flops repeated;     // that recomputation repeats of one sequence, on all ranks of the stage
};

// What all stages of a plan share, priced once.
struct SharedCosts {
  const PlanLinks& links;
  StageCosts layers;
  ExchangeUse use;
  PipelineSends sends;
  PricedMessages prices;  // of `links`
  bool stages_lie_alike;
};

// `links` outlive the costs. `table`: kernel times that are known already; may be null.
SharedCosts shared_costs(const PreparedJob& job, const Plan& plan, const PlanLinks& links,
                         const KernelTimeTable* table);

struct PricedStage {
  StageEstimate estimate;  // without memory
  UnitPasses units;
  StageEnds ends;
};
// Requires: `held` are the layers and parameters of stage `index`.
PricedStage price_stage(const PreparedJob& job, const Plan& plan, SharedCosts& shared,
                        const StageParameters& held, int index);

}  // namespace trainyard
