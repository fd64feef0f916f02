// Which layers repeat their forward pass in the backward pass. Internal to model/program.
#pragma once

#include "model/plan/plan.h"
#include "model/workload/training.h"

namespace trainyard {

// The scores of unfused attention only (Korthikanti et al. 2022); a fused kernel has none to keep.
bool repeats_core(const Training& training, const Plan& plan);
// All of layer `local_layer` of a stage: every one, the first few (Megatron's block method), or
// every second one where the stack means that by selective.
bool repeats_layer(const Training& training, const Plan& plan, int local_layer);

}  // namespace trainyard
