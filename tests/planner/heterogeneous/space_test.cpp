// A search space bounds the ways to use groups of unlike nodes, or leaves ways out with the reason.
#include "planner/heterogeneous/space.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/heterogeneous/pipeline.h"
#include "planner/heterogeneous/pricer.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

GroupedJob two_unlike_groups() { return groups_of({1, 1.5}); }

// Checks the keys as a document of one cluster of both groups means them; replicas are those of all
// groups.
void expect_allowed(const GroupSearchOptions& options, const GroupedPlan& found) {
  const SearchSpace& space = options.space;
  const Plan& plan = found.plan;
  int replicas = plan.data_parallel;
  if (found.use == GroupUse::replicas) {
    replicas = 0;
    for (const GroupShare& share : found.shares) replicas += share.replicas;
  }
  EXPECT_TRUE(space.tensor_parallel.has(plan.tensor_parallel));
  EXPECT_TRUE(space.pipeline_parallel.has(plan.pipeline_parallel));
  EXPECT_TRUE(space.data_parallel.has(replicas));
  EXPECT_TRUE(space.micro_batch.has(plan.micro_batch));
  EXPECT_TRUE(space.zero_stage.has(plan.zero_stage));
  const auto among = [](const auto& values, const auto& value) {
    return values.empty() || std::ranges::find(values, value) != values.end();
  };
  EXPECT_TRUE(plan.tensor_parallel == 1 || among(space.sequence_parallel, plan.sequence_parallel));
  EXPECT_TRUE(among(space.collective, plan.collective));
  if (!space.recompute.empty()) {
    const bool alike = plan.recompute_per_stage.empty();
    EXPECT_TRUE(among(space.recompute, RecomputeChoice{alike ? plan.recompute : Recompute{},
                                                       plan.recompute_per_stage}));
  }
  if (!options.layers_per_stage.empty()) {
    EXPECT_EQ(plan.layers_per_stage, options.layers_per_stage);
  }
}

// All these ways exist, and none has a value that the space leaves out.
void expect_all_allowed(const GroupSearchOptions& options, const char* what) {
  SCOPED_TRACE(what);
  const GroupedPlans found = plan_groups(two_unlike_groups(), options);
  EXPECT_TRUE(found.left_out.empty());
  EXPECT_TRUE(found.pipeline && found.replicas && found.alone[0] && found.alone[1]);
  for (const GroupedPlan& plan : in_order(found)) expect_allowed(options, plan);
}

// Selective recomputation repeats the attention core (Korthikanti et al. 2022), of which a fused
// kernel keeps nothing.
TEST(UnlikeSpace, LeavesOutSelectiveRecomputationOfACoreThatKeepsNothing) {
  Stack stack = small_dense_job().training.stack;
  const RecomputeChoice none, selective{{RecomputeMode::selective, 0}, {}};
  const RecomputeChoice full{{RecomputeMode::full, 0}, {}};
  EXPECT_EQ(recomputations({}, stack, 2), (std::vector{none, full}));
  SearchSpace named;
  named.recompute = {selective};
  EXPECT_EQ(recomputations(named, stack, 2), std::vector{selective});
  stack.flash_attention = false;
  EXPECT_EQ(recomputations({}, stack, 2), (std::vector{none, selective, full}));
}

TEST(UnlikeSpace, BoundsWhatEveryWaySearches) {
  GroupSearchOptions options;
  options.space.tensor_parallel = {2};
  expect_all_allowed(options, "tensor_parallel");
  options.space.micro_batch = Numbers::between(3, 12);  // not 1 or 2
  expect_all_allowed(options, "micro_batch");
  options.space.zero_stage = Numbers::between(2, 3);
  expect_all_allowed(options, "zero_stage");
  options.space.sequence_parallel = {false};
  expect_all_allowed(options, "sequence_parallel");
  options.space.collective = {"ring"};
  expect_all_allowed(options, "collective");
  options.space.recompute = {{{RecomputeMode::full, 2}, {}}, {{RecomputeMode::full, 0}, {}}};
  expect_all_allowed(options, "recompute");
  GroupSearchOptions stages;
  stages.layers_per_stage = {4, 8};
  stages.space.virtual_stages = {1};  // chunks have parts of a stage's layers
  expect_all_allowed(stages, "layers_per_stage");
  stages.space.recompute = {{{}, {{RecomputeMode::full, 0}, {RecomputeMode::none, 0}}}};
  expect_all_allowed(stages, "recompute stage by stage");
  stages.layers_per_stage.clear();
  expect_all_allowed(stages, "recompute stage by stage of even layers");
}

// The whole space has the best plan of its parts, because replicas are searched exhaustively.
TEST(UnlikeSpace, HasTheBestOfItsParts) {
  const GroupedJob job = two_unlike_groups();
  Seconds best(1e9);
  for (const int tensor : {1, 2, 4}) {
    for (const int micro_batch : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96}) {
      GroupSearchOptions part;
      part.space.tensor_parallel = {tensor};
      part.space.micro_batch = {micro_batch};
      const auto found = plan_groups(job, part).replicas;
      if (found) best = std::min(best, found->step_time);
    }
  }
  EXPECT_EQ(plan_groups(job).replicas->step_time, best);
}

// Second computation: a separate search for every ZeRO stage, sequence parallelism and micro-batch
// (16 sequences allow no others), so that none bounds another.
TEST(UnlikeSpace, SearchesWhatASearchOfOneClusterDoes) {
  GroupedJob job = two_unlike_groups();
  job.training.stack.sequence_parallel = true;
  job.training.global_batch = 16;
  Seconds pipeline(1e9), replicas(1e9);
  for (const int zero_stage : {0, 1, 2, 3}) {
    for (const bool sequence_parallel : {false, true}) {
      for (const int micro_batch : {1, 2, 4, 8, 16}) {
        GroupSearchOptions part;
        part.space.zero_stage = {zero_stage};
        part.space.sequence_parallel = {sequence_parallel};
        part.space.micro_batch = {micro_batch};
        const GroupedPlans found = plan_groups(job, part);
        if (found.pipeline) pipeline = std::min(pipeline, found.pipeline->step_time);
        if (found.replicas) replicas = std::min(replicas, found.replicas->step_time);
      }
    }
  }
  const GroupedPlans found = plan_groups(job);
  ASSERT_TRUE(found.pipeline && found.replicas);
  EXPECT_LE(found.pipeline->step_time, pipeline * (1 + 1e-12));
  EXPECT_LE(found.replicas->step_time, replicas * (1 + 1e-12));
}

// Over all splits of the layers, orders and micro-batches, no step is faster than the bound.
TEST(UnlikeSpace, BoundsTheStepOfEverySplit) {
  const GroupedJob job = two_unlike_groups();
  const GroupSearchOptions options;
  const PipelinePricer pricer(job, options);
  for (const int micro_batch : {1, 2, 4, 8}) {
    PlanRequest request{.tensor_parallel = 4,
                        .pipeline_parallel = 2,
                        .schedule = "1f1b",
                        .micro_batch = micro_batch};
    const auto degrees = pricer.degrees_of(pricer.legal(request).value());
    for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1}, {1, 0}}) {
      const Seconds bound = pricer.least_step(degrees, order);
      Seconds best(1e9);
      for (int layers = 0; layers <= job.model.layers; ++layers) {
        request.layers_per_stage = {layers, job.model.layers - layers};
        if (const auto plan = pricer.legal(request)) {
          best = std::min(best, pricer.price(*plan, order).step_time);
        }
      }
      EXPECT_LE(bound, best) << micro_batch;
      EXPECT_GT(bound, 0.7 * best) << micro_batch;
    }
  }
}

// The sizes share all other values; a smaller size starts a new series.
TEST(UnlikeSpace, LeavesOutMultiplesOfWhatIsTooLarge) {
  FittingSizes sizes;
  EXPECT_TRUE(sizes.may_fit(1));
  EXPECT_TRUE(sizes.may_fit(2));
  sizes.last_was_too_large();
  EXPECT_TRUE(sizes.may_fit(3));
  EXPECT_FALSE(sizes.may_fit(4));
  EXPECT_TRUE(sizes.may_fit(1));
  EXPECT_TRUE(sizes.may_fit(2));
}

// Stages that recompute everything hold less and take longer, so their layers are dealt
// differently. Second computation: every split.
TEST(UnlikeSpace, DealsLayersForTheRecomputationThatIsNamed) {
  const GroupedJob job = two_unlike_groups();
  for (const Recompute& named : {Recompute{RecomputeMode::full, 0},
                                 {RecomputeMode::full, 3},
                                 {RecomputeMode::selective, 0}}) {
    GroupSearchOptions options;
    options.space.tensor_parallel = {4};
    options.space.micro_batch = {1};
    options.space.recompute = {{named, {}}};
    options.space.zero_stage = {0};
    options.space.sequence_parallel = {false};
    const auto found = plan_groups(job, options).pipeline;
    ASSERT_TRUE(found);
    PlanRequest request{.tensor_parallel = 4,
                        .sequence_parallel = false,
                        .pipeline_parallel = 2,
                        .schedule = "1f1b",
                        .zero_stage = 0,
                        .recompute = named};
    Seconds best(1e9);
    for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1}, {1, 0}}) {
      for (int layers = 3; layers <= 9; ++layers) {
        request.layers_per_stage = {layers, 12 - layers};
        best = std::min(best, price_pipeline(job, request, order).step_time);
      }
    }
    EXPECT_NEAR(found->step_time / best, 1, 1e-9);
  }
}

// Ways through several groups have a single value for these keys; a group alone may have others.
TEST(UnlikeSpace, LeavesOutWaysWithTheKey) {
  const auto left_out = [](const auto& change) {
    GroupSearchOptions options;
    change(options);
    const GroupedPlans found = plan_groups(two_unlike_groups(), options);
    EXPECT_FALSE(found.pipeline || found.replicas);
    EXPECT_TRUE(found.complete);
    EXPECT_EQ(found.left_out.size(), 2u);
    EXPECT_TRUE(found.alone[0] && found.alone[1]);
    return found.left_out.empty() ? LeftOutWay{} : found.left_out.back();
  };
  const LeftOutWay schedule = left_out([](GroupSearchOptions& options) {
    options.space.schedule = {"interleaved-1f1b"};
    options.space.pipeline_parallel = {2};
  });
  EXPECT_EQ(schedule.key, "schedule");
  EXPECT_EQ(schedule.value, "1f1b");
  const LeftOutWay context =
      left_out([](GroupSearchOptions& options) { options.space.context_parallel = {2}; });
  EXPECT_EQ(context.key, "context_parallel");
  EXPECT_EQ(context.value, "1");
  const LeftOutWay sharding =
      left_out([](GroupSearchOptions& options) { options.space.rank_order = {"tp-cp-ep-pp-dp"}; });
  EXPECT_EQ(sharding.key, "rank_order");
}

// With 4 devices per node no group has tensor parallelism over 3, neither together nor alone.
TEST(UnlikeSpace, SaysWhichDegreesNoGroupCanHave) {
  GroupSearchOptions options;
  options.space.tensor_parallel = {3};
  const GroupedPlans found = plan_groups(two_unlike_groups(), options);
  EXPECT_TRUE(in_order(found).empty());
  ASSERT_EQ(found.left_out.size(), 4u);
  for (const LeftOutWay& way : found.left_out) {
    if (way.use == GroupUse::alone) continue;
    EXPECT_EQ(way.key, "tensor_parallel");
    EXPECT_EQ(way.value, "");
  }
  // Each of the two keys alone leaves some plans, together none: 8 devices are no 4·8.
  GroupSearchOptions both;
  both.space.tensor_parallel = {4};
  both.space.pipeline_parallel = {8};
  const GroupedPlans none = plan_groups(two_unlike_groups(), both);
  ASSERT_FALSE(none.left_out.empty());
  EXPECT_EQ(none.left_out.front().use, GroupUse::pipeline);
  EXPECT_EQ(none.left_out.front().key, "");
}

}  // namespace
}  // namespace trainyard
