// Plans whose estimate was found far from their simulation, the second computation of a step: one
// for each cause, small. What random plans show: simulator_agreement_test.
#include <gtest/gtest.h>

#include <vector>

#include "model/cost/estimate.h"
#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

double estimate_over_simulation(const PreparedJob& job, const PlanRequest& request) {
  const Plan plan = legal_plan(job, request);
  const auto simulation = simulate(job, plan);
  if (!simulation) {
    ADD_FAILURE() << simulation.error().where << ": " << simulation.error().message;
    return 0;
  }
  return estimate(job, plan).step_time / simulation->step_time;
}

// Where reductions outlast the passes, the sums over the two copies of a stage come behind the last
// of all reductions, not behind the last pass's.
TEST(FoundApart, DualpipeSumsOverItsCopiesBehindAllReductions) {
  PreparedJob job = llama_8b_on_h100(4, 32);
  job.job.training.sequence_length = 2048;
  job.job.cluster.inter.bandwidth *= 0.25;
  job = prepare(job.job);
  PlanRequest request{.tensor_parallel = 4, .pipeline_parallel = 2, .micro_batch = 1};
  request.schedule = "dualpipe";
  request.zero_stage = 2;
  request.overlap.data_parallel = true;
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.03);
}

// The gradients of logits stay with a weight gradient that is put off: of 128,256 words they are
// most of what the last stage holds. Published peaks do not tell: there another stage is fullest.
TEST(FoundApart, LastStagesHoldTheLogitGradientsThatTheyPutOff) {
  const PreparedJob job = llama_8b_on_h100(1, 128);
  for (const std::string_view schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2"}) {
    PlanRequest request{.pipeline_parallel = 8, .micro_batch = 1};
    request.schedule = schedule;
    const Plan plan = legal_plan(job, request);
    const auto played = simulate(job, plan);
    ASSERT_TRUE(played) << played.error().message;
    const auto at_last_stage = [](const Estimate& all) {
      return all.stages.back().memory.at_peak.allocated();
    };
    const Bytes counted = at_last_stage(estimate(job, plan));
    EXPECT_NEAR(counted / at_last_stage(as_estimate(job, plan, *played)), 1, 0.05) << schedule;
  }
}

PlanRequest activations_on_the_host(std::string_view schedule, int stages) {
  PlanRequest request{.pipeline_parallel = stages, .micro_batch = 1};
  request.schedule = schedule;
  request.offload.activations = OffloadTarget::host;
  return request;
}

// DualPipe's backward passes have both their halves to cover what comes back, but for a few of the
// last; and a micro-batch turns back behind passes of the other way.
TEST(FoundApart, DualpipeCoversCopiesWithWholeBackwardPasses) {
  PreparedJob job = llama_8b_on_h100(1, 64);
  job.job.training.sequence_length = 2048;
  job = prepare(job.job);
  EXPECT_NEAR(estimate_over_simulation(job, activations_on_the_host("dualpipe", 4)), 1, 0.05);
  EXPECT_NEAR(estimate_over_simulation(job, activations_on_the_host("dualpipe", 2)), 1, 0.05);
}

// In a V sixteen chunks of eight stages go forward before the first gradient comes: their
// activations leave for longer than that takes.
TEST(FoundApart, ZbVWaitsForTheActivationsOfItsFirstPasses) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  job.job.training.sequence_length = 2048;
  job = prepare(job.job);
  PlanRequest request = activations_on_the_host("zb-v", 8);
  request.virtual_stages = 2;
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.07);
}

// Its first stage ends before its last, which has the head's weight gradients first of those that
// it put off: the sum over both ends of a tied matrix makes nobody wait, as if they were two.
TEST(FoundApart, ZbH2OfTiedEmbeddingsDoesNotWaitForItsLastStage) {
  PreparedJob job = llama_8b_on_h100(1, 16);
  PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4, .micro_batch = 2};
  request.schedule = "zb-h2";
  for (const bool tied : {false, true}) {
    job.job.model.tied_embeddings = tied;
    job = prepare(job.job);
    EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.015) << tied;
  }
}

// That sum waits for the first stage's embedding, and no reduction of the layers waits for it: it
// has a communicator of its own (Megatron-LM's embedding group).
TEST(FoundApart, SumsOfTiedEmbeddingsHoldUpNoReduction) {
  PreparedJob job = llama_8b_on_h100(4, 32);
  job.job.model.tied_embeddings = true;
  job.job.cluster.inter.bandwidth *= 0.1;
  job = prepare(job.job);
  for (const int zero : {0, 1, 2}) {
    for (const std::string_view schedule : {"zb-h1", "zb-h2"}) {
      PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 2, .micro_batch = 1};
      request.schedule = schedule;
      request.zero_stage = zero;
      request.overlap.data_parallel = true;
      request.optimizer_barrier = false;
      EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.03) << schedule << ", " << zero;
    }
  }
}

// The stream is sent behind a pair of passes and the gradient received before one, so that
// neighbours wait for each other's sends before every pair (DualPipe's published implementation
// waits for its messages there).
TEST(FoundApart, DualpipeWaitsForSendsBeforeItsPairs) {
  PreparedJob job = llama_8b_on_h100(4, 32);
  job.job.cluster.inter.bandwidth *= 0.05;
  job = prepare(job.job);
  PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 4, .micro_batch = 1};
  request.schedule = "dualpipe";
  request.zero_stage = 0;
  request.overlap.pipeline = true;
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.02);
}

// Two nodes with one NIC each: the second member of each of four rings sends out, so that a ring
// has a quarter of it. In a layer and micro-batch three messages of α + S/B go forward and six
// back, S the keys and values of 8 heads of 128 in bf16, a quarter of them and of the tokens.
TEST(FoundApart, RingsShareANicWithTheOthersThatCrossNotWithTheirOwnMembers) {
  PreparedJob job = llama_8b_on_h100(2, 8);
  Cluster& cluster = job.job.cluster;
  cluster.inter.nics_per_node = 1;
  job = prepare(job.job);
  PlanRequest request{.tensor_parallel = 4, .context_parallel = 4, .micro_batch = 1};
  request.context_parallel_algorithm = ContextAlgorithm::ring;
  request.overlap.context_parallel = false;
  const double message =
      static_cast<double>(job.job.training.sequence_length) / 4 * 2 * 2 * 128 * 2;
  const double nic = cluster.inter.bandwidth.value() * cluster.inter.efficiency;
  const double expected = 8.0 * 32 * 9 * (cluster.inter.latency.value() + message / (nic / 4));
  const Plan plan = legal_plan(job, request);
  EXPECT_NEAR(estimate(job, plan).breakdown.context_parallel.value(), expected, 1e-9 * expected);
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.03);
}

// Likewise on a torus of one dimension, where four rings cross a link of the node's.
TEST(FoundApart, RingsShareALinkOfATorusWithTheOthersThatCross) {
  PreparedJob job = llama_8b_on_h100(4, 8);
  InterNode& inter = job.job.cluster.inter;
  inter.kind = InterNodeKind::torus;
  inter.dimensions = {4};
  job = prepare(job.job);
  PlanRequest request{.tensor_parallel = 4, .context_parallel = 8, .micro_batch = 1};
  request.context_parallel_algorithm = ContextAlgorithm::ring;
  request.overlap.context_parallel = false;
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.03);
}

// A stage behind the slowest one delays it by what its passes lose to reductions beyond the time in
// which it waits for the slowest: of few micro-batches by all of it.
TEST(FoundApart, StagesBehindTheSlowestDelayItByWhatTheyLose) {
  for (const int microbatches : {1, 2, 4}) {
    const PreparedJob job = llama_8b_on_h100(16, 2 * microbatches);
    for (const std::vector<int>& layers : {std::vector{8, 8, 8, 8}, {10, 8, 8, 6}, {11, 7, 7, 7}}) {
      PlanRequest request{
          .tensor_parallel = 2, .context_parallel = 8, .pipeline_parallel = 4, .micro_batch = 1};
      request.context_parallel_algorithm = ContextAlgorithm::all_gather;
      request.layers_per_stage = layers;
      request.zero_stage = 1;
      request.overlap.data_parallel = true;
      EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.015)
          << layers.front() << ", " << microbatches;
    }
  }
}

// Of several chunks a micro-batch passes all stages before it is back: all of them delay it in
// every chunk, but go on with their reductions while they wait for each other.
TEST(FoundApart, StagesOfSeveralChunksDelayEachOtherInEveryRound) {
  PreparedJob job = llama_8b_on_h100(64, 8);
  job.job.training.stack.overlap_slowdown = 0.3;
  job = prepare(job.job);
  PlanRequest request{.tensor_parallel = 16,
                      .context_parallel = 4,
                      .pipeline_parallel = 4,
                      .virtual_stages = 2,
                      .micro_batch = 1};
  request.context_parallel_algorithm = ContextAlgorithm::all_gather;
  request.zero_stage = 1;
  request.overlap.data_parallel = true;
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.01);
}

// A sharding group of one rank sums all gradients with the others, over the NICs that tensor
// parallelism across nodes has to share with them.
TEST(FoundApart, SumsAcrossShardingGroupsShareLinksWithTensorParallelism) {
  PreparedJob job = llama_8b_on_h100(4, 2);
  job.job.cluster.inter.bandwidth *= 4;
  job = prepare(job.job);
  PlanRequest request{.tensor_parallel = 16, .micro_batch = 1};
  request.zero_stage = 2;
  request.sharding_group = 1;
  request.overlap.data_parallel = true;
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.05);
}

// Both leave their nodes, but most of their bytes stay there: where NVLink is no faster than the
// NICs together it is what they share.
TEST(FoundApart, GroupsThatLeaveTheirNodesShareItsInsideToo) {
  PreparedJob job = llama_8b_on_h100(4, 16);
  job.job.cluster.intra.bandwidth *= 0.3;
  job.job.cluster.inter.bandwidth *= 2;
  job = prepare(job.job);
  PlanRequest request{.context_parallel = 16, .micro_batch = 8};
  request.context_parallel_algorithm = ContextAlgorithm::all_gather;
  request.overlap.context_parallel = false;
  request.zero_stage = 2;
  request.overlap.data_parallel = true;
  EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.07);
}

// Of stages of six ranks on nodes of eight the first reduces within its node, of fourteen by three
// NICs a group where others have one. With the links of the stages that have least 4 and 6 % apart.
TEST(FoundApart, StagesThatStraddleNodesInUnlikeWaysReduceOverTheirOwnLinks) {
  for (const int nodes : {3, 7}) {
    const PreparedJob job = llama_8b_on_h100(nodes, nodes * 16);
    const PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4, .micro_batch = 1};
    EXPECT_NEAR(estimate_over_simulation(job, request), 1, 0.02) << nodes;
  }
}

}  // namespace
}  // namespace trainyard
