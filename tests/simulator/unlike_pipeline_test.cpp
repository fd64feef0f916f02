// Pipelines through groups of nodes: two groups of the same nodes are compared with one cluster of
// them, and what crosses a boundary with times computed by hand.
#include <gtest/gtest.h>

#include <vector>

#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

// Two groups of `nodes` nodes like the job's.
UnlikeCluster two_groups(const PreparedJob& job, int nodes) {
  Cluster group = job.job.cluster;
  group.nodes = nodes;
  return {.groups = {group, group}, .boundary = {}};
}

StepSimulation played(const PreparedJob& job, const UnlikeCluster& cluster, const Plan& plan,
                      const StepOptions& options = {}) {
  const UnlikePipeline pipeline(job.job.model, job.job.training, cluster, {0, 1}, plan);
  auto found = simulate(pipeline, plan, options);
  EXPECT_TRUE(found) << found.error().where << ": " << found.error().message;
  return found ? *std::move(found) : StepSimulation{};
}

PlanRequest stages(int count, int tensor_parallel, bool overlapped) {
  PlanRequest request{.tensor_parallel = tensor_parallel, .pipeline_parallel = count};
  request.micro_batch = 1;
  request.schedule = "1f1b";
  request.overlap.pipeline = overlapped;
  return request;
}

// Beside the boundary a message meets the same NICs and the same latency, so both steps are the
// same to a few picoseconds an operation.
TEST(UnlikePipeline, ThroughLikeNodesIsOneCluster) {
  const PreparedJob job = llama_8b_on_h100(4, 64);
  for (const bool overlapped : {false, true}) {
    for (const int tensor_parallel : {1, 4}) {
      for (const Fold fold : {Fold::automatic, Fold::off}) {
        const Plan plan = legal_plan(job, stages(4, tensor_parallel, overlapped));
        const StepOptions options{.fold = fold};
        const auto whole = simulate(job, plan, options);
        ASSERT_TRUE(whole) << whole.error().message;
        const StepSimulation groups = played(job, two_groups(job, 2), plan, options);
        EXPECT_NEAR(groups.step_time / whole->step_time, 1, 1e-7)
            << overlapped << " " << tensor_parallel;
        EXPECT_EQ(groups.operations, whole->operations);
        EXPECT_EQ(groups.stages.back().memory.peak.bytes, whole->stages.back().memory.peak.bytes);
      }
    }
  }
}

// One micro-batch on two stages crosses twice: its activations, then their gradients. The sum of
// the gradient norm, four bytes, crosses too.
TEST(UnlikePipeline, TakesAMessagesTimeMoreEachWayOverANarrowBoundary) {
  const PreparedJob job = llama_8b_on_h100(2, 1);
  const Plan plan = legal_plan(job, stages(2, 8, false));
  ASSERT_EQ(plan.microbatches, 1);
  UnlikeCluster cluster = two_groups(job, 1);
  const auto step_with = [&](double bandwidth, double latency) {
    cluster.boundary = {BytesPerSecond(bandwidth), Seconds(latency)};
    return played(job, cluster, plan).step_time.value();
  };
  // Sequence parallelism: each rank sends its eighth of the tokens, 4,096 bf16 numbers each.
  const Training& training = job.job.training;
  const double message = static_cast<double>(training.sequence_length) / 8 * 4096 * 2;
  const double fast = step_with(10e9, 1e-5);
  EXPECT_NEAR(step_with(1e9, 1e-5) - fast, 2 * message * (1e-9 - 1e-10), 1e-8);
  EXPECT_NEAR(step_with(10e9, 1e-3) - fast, 3 * (1e-3 - 1e-5), 1e-5);
}

// A named latency holds between groups, however long those of their own fabrics are: two messages
// and the sum of the gradient norm, as above.
TEST(UnlikePipeline, HasTheBoundarysLatencyBetweenGroupsOnly) {
  const PreparedJob job = llama_8b_on_h100(2, 1);
  const Plan plan = legal_plan(job, stages(2, 8, false));
  UnlikeCluster cluster = two_groups(job, 1);
  for (Cluster& group : cluster.groups) group.inter.latency = Seconds(1e-2);
  const Seconds slow = played(job, cluster, plan).step_time;
  cluster.boundary.latency = Seconds(1e-5);
  const Seconds fast = played(job, cluster, plan).step_time;
  EXPECT_NEAR((slow - fast).value(), 3 * (1e-2 - 1e-5), 1e-4);
}

// A ring over ranks of both groups, for the sum of the gradient norm: in each group it knows the
// domains of that group's members only.
TEST(UnlikePipeline, PlaysRingsOverRanksOfSeveralGroups) {
  const PreparedJob job = llama_8b_on_h100(4, 64);
  PlanRequest request = stages(4, 8, false);
  request.collective = "ring";
  const Plan plan = legal_plan(job, request);
  const auto whole = simulate(job, plan);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_NEAR(played(job, two_groups(job, 2), plan).step_time / whole->step_time, 1, 1e-6);
}

// Without a named bandwidth a message goes over the NICs of both ends, so the narrower ones decide.
TEST(UnlikePipeline, SendsOverTheNarrowerNicsOfTwoGroups) {
  const PreparedJob job = llama_8b_on_h100(2, 1);
  const Plan plan = legal_plan(job, stages(2, 8, false));
  UnlikeCluster cluster = two_groups(job, 1);
  const double even = played(job, cluster, plan).step_time.value();
  const double nic = nics_of_a_device(cluster.groups[0]).value();
  const double message = static_cast<double>(job.job.training.sequence_length) / 8 * 4096 * 2;
  for (Cluster& group : cluster.groups) {
    const BytesPerSecond whole = group.inter.bandwidth;
    group.inter.bandwidth *= 0.25;
    EXPECT_NEAR(played(job, cluster, plan).step_time.value() - even, 2 * message * 3 / nic, 1e-9);
    group.inter.bandwidth = whole;
  }
}

Bytes summed_over_ends(const Program& program) {
  for (const Block& block : program.blocks) {
    for (const Operation& operation : block.operations) {
      if (operation.group == Group::tied_embedding) return operation.message;
    }
  }
  return Bytes(0);
}

// GPT-3's head is tied to its embedding: the ends of the pipeline add up its gradients behind the
// last pass. An all-reduce of S bytes over two ranks takes 2 · (n − 1) / n · S / B = S / B.
TEST(UnlikePipeline, SumsUpATiedEmbeddingOverTheBoundary) {
  const PreparedJob job = gpt3_on_a100(2, 1);
  PlanRequest request = stages(2, 8, false);
  request.zero_stage = 0;
  const Plan plan = legal_plan(job, request);
  UnlikeCluster cluster = two_groups(job, 1);
  const auto step_with = [&](double bandwidth) {
    cluster.boundary = {BytesPerSecond(bandwidth), Seconds(1e-5)};
    return played(job, cluster, plan);
  };
  const StepSimulation fast = step_with(10e9);
  const double sum = summed_over_ends(*fast.step.program).value();
  // An eighth of 50,257 words and more of 12,288 numbers each, in two or four bytes.
  EXPECT_GT(sum, 50257.0 / 8 * 12288 * 2);
  const double message = static_cast<double>(job.job.training.sequence_length) / 8 * 12288 * 2;
  EXPECT_NEAR((step_with(1e9).step_time - fast.step_time).value(),
              (sum + 2 * message) * (1e-9 - 1e-10), 1e-8);
}

TEST(UnlikePipeline, RefusesAStepBeyondItsClock) {
  const PreparedJob job = llama_8b_on_h100(2, 1'000'000'000);
  const Plan plan = legal_plan(job, stages(2, 8, false));
  const UnlikePipeline pipeline(job.job.model, job.job.training, two_groups(job, 1), {0, 1}, plan);
  EXPECT_EQ(simulate(pipeline, plan).error().where, "simulation");
}

// Through like nodes it is the straggler of one cluster: ranks count through both groups.
TEST(UnlikePipeline, HasStragglersInTheOrderOfItsStages) {
  const PreparedJob job = llama_8b_on_h100(2, 8);
  const Plan plan = legal_plan(job, stages(2, 8, true));
  const double normal = played(job, two_groups(job, 1), plan).step_time.value();
  for (const Straggler& slow : {Straggler{.rank = 3, .node = {}, .speed = 0.5},
                                Straggler{.rank = {}, .node = 1, .speed = 0.5}}) {
    StepOptions options;
    options.conditions.stragglers.push_back(slow);
    const auto whole = simulate(job, plan, options);
    ASSERT_TRUE(whole) << whole.error().message;
    const StepSimulation groups = played(job, two_groups(job, 1), plan, options);
    EXPECT_NEAR(groups.step_time / whole->step_time, 1, 1e-7);
    EXPECT_GT(groups.step_time.value(), 1.3 * normal);
  }
}

TEST(UnlikePipeline, RefusesConditionsThatItDoesNotHave) {
  const PreparedJob job = llama_8b_on_h100(2, 8);
  const Plan plan = legal_plan(job, stages(2, 8, false));
  const UnlikePipeline pipeline(job.job.model, job.job.training, two_groups(job, 1), {0, 1}, plan);
  StepOptions nobody;
  nobody.conditions.stragglers.push_back({.rank = 16, .speed = 0.5});
  EXPECT_EQ(simulate(pipeline, plan, nobody).error().where, "/simulation/stragglers/0/rank");
  StepOptions narrow;
  narrow.conditions.links.push_back({.of = {VertexKind::nic, 0}, .to = {}, .rate = 0.5});
  EXPECT_EQ(simulate(pipeline, plan, narrow).error().where, "/simulation/links");
}

}  // namespace
}  // namespace trainyard
