// Software with the limits of torchtitan (0), FSDP (1), Megatron-LM (2) and Megatron-Core (3).
// limits_like() gives the limits as the planner reads them. runs_like() spells the same rules out
// as a predicate, independently of planner/offered.h.
#pragma once

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

StackLimits limits_like(int software);
bool runs_like(int software, const Job& job, const Plan& plan);

}  // namespace trainyard
