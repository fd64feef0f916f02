// Software with limits like those of torchtitan (0), FSDP (1), Megatron-LM (2) and Megatron-Core
// (3); the rules of each are spelled out again, beside planner/offered.h.
#pragma once

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

StackLimits limits_like(int software);
bool runs_like(int software, const Job& job, const Plan& plan);

}  // namespace trainyard
