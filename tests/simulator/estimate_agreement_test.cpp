// Parts of a step that the analytic estimate and the program price by roads of their own, where
// nothing overlaps: both say the same of each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

struct Roads {
  Estimate estimated, played;
};

Roads both_roads(const PreparedJob& job, PlanRequest request) {
  request.overlap.data_parallel = false;
  const Plan plan = legal_plan(job, request);
  const auto simulation = simulate(job, plan);
  if (!simulation) {
    ADD_FAILURE() << simulation.error().where << ": " << simulation.error().message;
    return {};
  }
  return {estimate(job, plan), as_estimate(job, plan, *simulation)};
}

// Mixtral's layers, eight of them, on a node of eight H100.
PreparedJob mixtral_job(bool deduplicated) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.model = mixtral_8x7b();
  job.job.model.layers = 8;
  job.job.training.stack.deduplicated_dispatch = deduplicated;
  return prepare(job.job);
}

PlanRequest of_experts(int expert, int expert_tensor, PlanRequest request = {}) {
  request.zero_stage = 1;
  request.expert_parallel = expert;
  request.expert_tensor_parallel = expert_tensor;
  return request;
}

TEST(EstimateAgreement, OfExpertsThatSeveralRanksShare) {
  const std::vector<PlanRequest> requests = {
      of_experts(1, 2),
      of_experts(1, 4),
      of_experts(2, 2),
      of_experts(4, 2),
      of_experts(2, 2, {.capacity_factor = 0.75}),
      of_experts(2, 2, {.load_imbalance = 1.5}),
      of_experts(2, 2, {.recompute = {RecomputeMode::full, 0}}),
      of_experts(4, 2, {.tensor_parallel = 2}),
  };
  for (const bool deduplicated : {false, true}) {
    const PreparedJob job = mixtral_job(deduplicated);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Roads roads = both_roads(job, requests[i]);
      const std::string what = std::to_string(i) + (deduplicated ? " deduplicated" : "");
      EXPECT_NEAR(
          roads.played.breakdown.expert_parallel / roads.estimated.breakdown.expert_parallel, 1,
          0.02)
          << what;
      EXPECT_NEAR(roads.played.step_time / roads.estimated.step_time, 1, 0.03) << what;
    }
  }
}

}  // namespace
}  // namespace trainyard
