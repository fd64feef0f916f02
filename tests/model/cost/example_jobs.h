// Jobs and plans for the tests of the cost model.
#pragma once

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/schedule/schedule.h"

namespace trainyard {

Cluster example_cluster(Device device, int nodes);

// GPT-3 175B as Korthikanti et al. 2022 trained it: 64 A100, batch 64, no flash attention.
PreparedJob gpt3_on_a100(int nodes = 8, std::int64_t global_batch = 64);
// Llama-3.1-8B in bf16 with flash attention on one node of H100.
PreparedJob llama_8b_on_h100(int nodes = 1, std::int64_t global_batch = 64);

// The legal plan that `request` asks for; fails the test if make_plan refuses it.
Plan legal_plan(const PreparedJob& job, const PlanRequest& request);

}  // namespace trainyard
