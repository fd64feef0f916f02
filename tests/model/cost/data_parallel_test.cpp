#include "model/cost/data_parallel.h"

#include <gtest/gtest.h>

#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

using namespace literals;

// A ring of 64 ranks without latency at 1 byte a second: the time is the bytes on the wire.
PlanLinks unit_ring(int ranks) {
  GroupLinks ring;
  ring.size = ring.ranks_per_domain = ranks;
  ring.inside = ring.inside_pair = BytesPerSecond(1);
  PlanLinks links;
  links.dense_gradient = links.dense_shard = ring;
  links.choice.algorithm = "ring";
  return links;
}

double traffic_in_gigabytes(int zero_stage) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.reduction_bytes = 2;
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = zero_stage;
  plan.microbatches = 8;
  StageParameters stage;
  stage.dense = 7e9;
  return data_parallel_traffic(job, plan, unit_ring(64), stage).value() / 1e9;
}

// golden.md, "ZeRO traffic per rank and step": Φ = 7e9, 64 ranks, 8 micro-steps, 2 bytes.
TEST(DataParallelTraffic, OfZeroStagesIsTheGoldenOne) {
  EXPECT_NEAR(traffic_in_gigabytes(0), 27.56, 0.005);
  EXPECT_NEAR(traffic_in_gigabytes(1), 27.56, 0.005);
  EXPECT_NEAR(traffic_in_gigabytes(2), 124.0, 0.1);
  EXPECT_NEAR(traffic_in_gigabytes(3), 330.8, 0.1);
}

// Overlapped communication hides behind compute that is long enough, all but its last piece.
TEST(DataParallelCost, HidesBehindLongBackwardPasses) {
  PreparedJob job = llama_8b_on_h100();
  job.job.training.stack.overlap_slowdown = 0;
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.zero_stage = 1;
  plan.sharding_group = 64;
  StageParameters stage;
  stage.dense = 1e9;
  stage.layers = 9;
  stage.largest_layer = 1e8;  // and an embedding as large
  const PlanLinks links = unit_ring(64);
  const PassTimes long_passes{Seconds(1e12), Seconds(1e12), Seconds(1e12)};
  const Seconds all = data_parallel_cost(job, plan, links, stage, long_passes).step;
  plan.overlap.data_parallel = true;
  const Seconds rest = data_parallel_cost(job, plan, links, stage, long_passes).step;
  // The first layer and the embedding are reduced last: 2e8 of 1e9 parameters.
  EXPECT_NEAR(rest / all, 0.2, 1e-9);
}

// Two nodes of 32 ranks; a ring that passes the boundary at a quarter of the inner links' rate
// takes compute only a quarter as long as it runs.
TEST(DataParallelCost, OfASlowNetworkLeavesComputeTheDevice) {
  PreparedJob job = llama_8b_on_h100();
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.sharding_group = 64;
  plan.overlap.data_parallel = true;
  StageParameters stage;
  stage.dense = 1e9;
  stage.layers = 10;
  stage.largest_layer = 1e8;
  PlanLinks links = unit_ring(64);
  links.dense_gradient.ranks_per_domain = 32;
  links.dense_gradient.domains = 2;
  links.dense_gradient.across = BytesPerSecond(0.25 / 32);
  const PassTimes long_passes{Seconds(1e12), Seconds(1e12), Seconds(1e12)};
  const auto step = [&](double slowdown) {
    job.job.training.stack.overlap_slowdown = slowdown;
    return data_parallel_cost(job, plan, links, stage, long_passes).step;
  };
  const Seconds last_piece = step(0);  // a tenth of the whole
  EXPECT_NEAR((step(1) - last_piece) / last_piece, 9 * 0.25, 1e-9);
}

// 30 bytes a parameter for mixed-precision Adam (handbook §4), and the norm's 4 once more.
TEST(OptimizerTime, ReadsAndWritesTheStatesOfTheShard) {
  PreparedJob job = llama_8b_on_h100();
  job.job.cluster.device = ideal_device();  // 1 TB/s
  job.job.training.stack.gradient_bytes = 4;
  Plan plan;
  plan.zero_stage = 1;
  plan.sharding_group = 8;
  StageParameters stage;
  stage.dense = 8e9;
  EXPECT_NEAR(optimizer_time(job, plan, stage).value(), 1e9 * 34 / 1e12, 1e-9);
}

// Lion moves the same bytes. A layer of Llama-8B (h 4096, f 14336, keys 1024 wide) has 2 · 6h³ for
// Q and O, 2 · (4·1024²·h + 2·1024³) for K and V and 3 · (4h²f + 2h³) for the MLP, five times;
// eight ranks of TP and eight of ZeRO-1 share 32 layers, at 100 TFLOP/s.
TEST(OptimizerTime, OfMuonAddsTheProductsOfItsMatrices) {
  PreparedJob job = llama_8b_on_h100();
  job.job.cluster.device = ideal_device();
  Plan plan;
  plan.tensor_parallel = 8;
  plan.zero_stage = 1;
  plan.sharding_group = 8;
  StageParameters stage;
  stage.dense = 1e9;
  stage.kinds[0] = 32;
  job.job.training.optimizer = *find_optimizer("lion");
  const Seconds lion = optimizer_time(job, plan, stage);
  job.job.training.optimizer = *find_optimizer("muon");
  const Seconds muon = optimizer_time(job, plan, stage);
  const double layer = 2 * 4.12317e11 + 2 * 1.93274e10 + 3 * 1.09951e12;
  EXPECT_NEAR((muon - lion).value(), 32 * 5 * layer / 64 / 100e12, 1e-5);
}

}  // namespace
}  // namespace trainyard
