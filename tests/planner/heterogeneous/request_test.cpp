// Named plans for groups of unlike nodes: a found plan prices to itself, and an impossible one is
// refused by its key.
#include "planner/heterogeneous/request.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

TEST(UnlikeRequest, OfWhatWasFoundPricesToTheSame) {
  GroupedJob job = groups_of({1.5, 1, 2});
  job.cluster.groups[2].device.memory = job.cluster.groups[2].device.memory * 0.25;
  const GroupedPlans found = plan_groups(job);
  ASSERT_TRUE(found.pipeline && found.even_pipeline && found.replicas);
  for (const auto& plan :
       {found.pipeline, found.even_pipeline, found.replicas, found.together, found.alone[1]}) {
    ASSERT_TRUE(plan);
    const auto priced = price_grouped(job, request_of(*plan));
    ASSERT_TRUE(priced) << priced.error().where << ": " << priced.error().message;
    EXPECT_EQ(priced->step_time, plan->step_time);
    EXPECT_EQ(priced->step_time_high, plan->step_time_high);
    EXPECT_EQ(priced->boundary, plan->boundary);
    EXPECT_EQ(priced->fullness, plan->fullness);
    EXPECT_EQ(priced->order, plan->order);
    EXPECT_TRUE(priced->feasible);
    for (std::size_t g = 0; g < 3; ++g) {
      EXPECT_EQ(priced->shares[g].layers, plan->shares[g].layers);
      EXPECT_EQ(priced->shares[g].microbatches, plan->shares[g].microbatches);
      EXPECT_EQ(priced->shares[g].peak_memory, plan->shares[g].peak_memory);
      EXPECT_EQ(priced->shares[g].recompute, plan->shares[g].recompute);
    }
  }
}

// Groups may be written in any order; their entries follow them.
TEST(UnlikeRequest, HasItsEntriesInTheOrderOfItsGroups) {
  const GroupedJob job = groups_of({1, 1.5, 2});
  GroupSearchOptions options;
  options.space.data_parallel = {3};
  options.space.tensor_parallel = {4};
  const auto found = plan_groups(job, options).replicas;
  ASSERT_TRUE(found);
  GroupedRequest request = request_of(*found);
  std::ranges::reverse(request.order);
  std::ranges::reverse(request.microbatches);
  std::ranges::reverse(request.recompute);
  const auto priced = price_grouped(job, request);
  ASSERT_TRUE(priced);
  EXPECT_EQ(priced->step_time, found->step_time);
}

TEST(UnlikeRequest, MayBeAPlanThatDoesNotFit) {
  GroupedJob job = groups_of({1, 1.5});
  const GroupedPlans found = plan_groups(job);
  job.cluster.groups[1].device.memory = Bytes(1e6);
  for (const auto& plan : {found.pipeline, found.replicas}) {
    const auto priced = price_grouped(job, request_of(*plan));
    ASSERT_TRUE(priced);
    EXPECT_FALSE(priced->feasible);
    EXPECT_GT(priced->fullness, 1);
  }
}

// A stage on each of two like groups is a stage on each of two nodes, whatever fill and drain hide.
TEST(UnlikeRequest, OfAPipelineThroughLikeGroupsTakesAsLongAsOneCluster) {
  GroupedJob groups = groups_of({1, 1});
  groups.training.global_batch = 16;
  for (Cluster& group : groups.cluster.groups) group.intra.bandwidth *= 0.1;
  Cluster both = groups.cluster.groups[0];
  both.nodes = 2;
  for (const int zero : {0, 1, 2, 3}) {
    PlanRequest request{.pipeline_parallel = 2, .schedule = "1f1b", .micro_batch = 1};
    request.zero_stage = zero;
    request.overlap.data_parallel = true;
    const auto priced =
        price_grouped(groups, {.use = GroupUse::pipeline, .order = {0, 1}, .plan = request});
    ASSERT_TRUE(priced) << priced.error().message;
    const auto plan = make_plan(request, groups.model, both, groups.training);
    const Estimate one = estimate(prepare({groups.model, both, groups.training}), plan.value());
    EXPECT_NEAR(priced->step_time / one.step_time, 1, 1e-9) << zero;
  }
}

// Four devices a node, 12 layers, 96 sequences.
TEST(UnlikeRequest, IsRefusedByTheKeyThatCannotBe) {
  const GroupedJob job = groups_of({1, 1.5});
  const auto where = [&job](GroupUse use, const auto& change) {
    GroupedRequest request{.use = use, .order = {0, 1}};
    request.plan = {.tensor_parallel = 4, .schedule = "1f1b"};
    if (use == GroupUse::pipeline) request.plan.pipeline_parallel = 2;
    if (use == GroupUse::replicas) request.microbatches = {60, 36};
    change(request);
    const auto priced = price_grouped(job, request);
    return priced ? std::string("none") : priced.error().where;
  };
  constexpr GroupUse kPipeline = GroupUse::pipeline, kReplicas = GroupUse::replicas;
  EXPECT_EQ(where(kPipeline, [](GroupedRequest&) {}), "none");
  EXPECT_EQ(where(kReplicas, [](GroupedRequest&) {}), "none");
  EXPECT_EQ(where(kPipeline,
                  [](GroupedRequest& r) {
                    r.order = {0, 2};
                  }),
            "/use_of_groups/order/1");
  EXPECT_EQ(where(kPipeline,
                  [](GroupedRequest& r) {
                    r.order = {1, 1};
                  }),
            "/use_of_groups/order/1");
  EXPECT_EQ(where(kPipeline, [](GroupedRequest& r) { r.plan.schedule = "gpipe"; }),
            "/plan/schedule");
  EXPECT_EQ(
      where(kPipeline, [](GroupedRequest& r) { r.plan.offload.optimizer = OffloadTarget::host; }),
      "/plan/offload");
  EXPECT_EQ(
      where(kPipeline, [](GroupedRequest& r) { r.plan.recompute.mode = RecomputeMode::automatic; }),
      "/plan/recompute");
  EXPECT_EQ(where(kPipeline,
                  [](GroupedRequest& r) {
                    r.plan.layers_per_stage = {6, 5};
                  }),
            "/plan/layers_per_stage");
  EXPECT_EQ(where(kPipeline,
                  [](GroupedRequest& r) {
                    r.plan.pipeline_parallel = 1;
                    r.plan.data_parallel = 2;
                  }),
            "/plan/data_parallel");
  EXPECT_EQ(where(kReplicas, [](GroupedRequest& r) { r.plan.data_parallel = 3; }),
            "/plan/data_parallel");
  EXPECT_EQ(where(kReplicas,
                  [](GroupedRequest& r) {
                    r.microbatches = {60, 37};
                  }),
            "/use_of_groups/micro_batches");
  EXPECT_EQ(where(kReplicas, [](GroupedRequest& r) { r.microbatches = {96}; }),
            "/use_of_groups/micro_batches");
  EXPECT_EQ(where(kReplicas, [](GroupedRequest& r) { r.recompute.resize(1); }),
            "/use_of_groups/recompute");
}

}  // namespace
}  // namespace trainyard
