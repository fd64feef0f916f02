#include "model/cost/sharding/stage_copies.h"

#include <gtest/gtest.h>

#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

using namespace literals;

// Seconds for the all-reduce of 10^9 gradients of 4 bytes of a tied embedding, on 16 devices in two
// nodes with one NIC of 25 GB/s each.
double seconds_for_tied_gradients(const PlanRequest& request) {
  Cluster cluster = example_cluster(example_a100(), 2);
  cluster.inter.nics_per_node = 1;
  PreparedJob job = prepare({gpt3_175b(), cluster, megatron_2022(64)});
  job.job.training.stack.reduction_bytes = 4;
  const Plan plan = legal_plan(job, request);
  StageParameters stage;
  stage.tied_embedding = 1e9;
  return sums_of_copies(job, plan, plan_links(job, plan), stage).ends.value();
}

// A ring of two passes all gradients on in each direction (handbook §6: 2(n − 1)/n), at 0.85 of a
// NIC. The ranks of one stage on a node share the NIC: with two stages on a node these are t·d = 4
// of its 8 ranks, with four stages 2, whatever stages lie between.
TEST(StageCopies, OfATiedEmbeddingShareTheirNicWithTheirOwnStageAlone) {
  const double of_one_rank = 4e9 / (0.85 * 25e9);
  EXPECT_NEAR(seconds_for_tied_gradients({.tensor_parallel = 8, .pipeline_parallel = 2}),
              8 * of_one_rank, 1e-3);
  EXPECT_NEAR(seconds_for_tied_gradients({.tensor_parallel = 2, .pipeline_parallel = 4}),
              4 * of_one_rank, 1e-3);
  EXPECT_NEAR(seconds_for_tied_gradients({.tensor_parallel = 2, .pipeline_parallel = 8}),
              2 * of_one_rank, 1e-3);
}

}  // namespace
}  // namespace trainyard
