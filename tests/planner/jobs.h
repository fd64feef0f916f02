// Small jobs whose whole space can be listed naively, and a cost model for tests: an arbitrary but
// fixed function of the plan, so that nothing but a complete enumeration finds its minimum.
#pragma once

#include <vector>

#include "planner/heterogeneous/groups.h"
#include "planner/planner.h"

namespace trainyard {

// A transformer of 4 layers, 8 heads and 4 KV heads, with B = 8 and s = 512, on 8 devices with
// ample memory and flash attention.
Job small_dense_job();
// The same job with 4 experts in every layer, of which each token passes 2.
Job small_moe_job();
// Llama-3.1-8B on `nodes` nodes of eight H100 with 80 GiB each.
Job llama_8b_job(int nodes);

// small_dense_job with 12 layers and a batch of 96 on several groups of four ideal devices each.
// All kernels of group i take slowness[i] times as long.
GroupedJob groups_of(const std::vector<double>& slowness);

// Step time, memory and feasibility from a hash of those fields of the plan that can change its
// cost.
Estimate arbitrary_estimate(const Job& job, const Plan& plan);

}  // namespace trainyard
