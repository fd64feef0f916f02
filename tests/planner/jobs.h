// Small jobs whose whole space can be listed naively, and a cost model for tests: an arbitrary but
// fixed function of the plan, so that nothing but a complete enumeration finds its minimum.
#pragma once

#include <vector>

#include "planner/heterogeneous/groups.h"
#include "planner/planner.h"

namespace trainyard {

// 4 layers, 8 heads, 4 KV heads, B = 8, s = 512 on 8 devices of ample memory, flash attention.
Job small_dense_job();
// The same with 4 experts in every layer, 2 a token.
Job small_moe_job();
// Llama-3.1-8B's shape on `nodes` nodes of eight H100 with 80 GiB.
Job llama_8b_job(int nodes);

// small_dense_job with 12 layers and a batch of 96 on groups of four ideal devices each, of which
// the kernels take so many times as long.
GroupedJob groups_of(const std::vector<double>& slowness);

// Step time, memory and feasibility from a hash of what can make a difference to a plan's cost.
Estimate arbitrary_estimate(const Job& job, const Plan& plan);

}  // namespace trainyard
