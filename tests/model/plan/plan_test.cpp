#include "model/plan/plan.h"

#include <gtest/gtest.h>

#include "model/schedule/schedule.h"
#include "tests/model/plan/question.h"

namespace trainyard {
namespace {

TEST(PlanDefaults, LetDataParallelFillTheCluster) {
  PlanQuestion question;  // 64 devices
  question.request.tensor_parallel = 8;
  question.request.pipeline_parallel = 2;
  const auto plan = question.answer();
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->data_parallel, 4);
  EXPECT_EQ(plan->devices(), 64);
  EXPECT_EQ(plan->microbatches, 16);   // m = B / (b·D) = 64 / 4
  EXPECT_EQ(plan->sharding_group, 4);  // D·c
  EXPECT_EQ(plan->expert_data_parallel, 32);
}

// Design §3: the defaults where every key is absent.
TEST(PlanDefaults, AreOneDegreeEachAndWhatTheStackSays) {
  PlanQuestion question;
  question.training.stack.overlap.data_parallel = true;
  const Plan plan = question.answer().value();
  EXPECT_EQ(plan.tensor_parallel * plan.context_parallel * plan.pipeline_parallel, 1);
  EXPECT_EQ(plan.virtual_stages * plan.expert_parallel * plan.expert_tensor_parallel, 1);
  EXPECT_EQ(plan.micro_batch, 1);
  EXPECT_EQ(plan.schedule->name, "1f1b");
  EXPECT_FALSE(plan.sequence_parallel);  // t = 1
  EXPECT_EQ(plan.context_parallel_algorithm, ContextAlgorithm::ring);
  EXPECT_EQ(plan.recompute.mode, RecomputeMode::none);
  EXPECT_EQ(plan.capacity_factor, 0);  // dropless
  EXPECT_EQ(plan.load_imbalance, 1);
  EXPECT_EQ(plan.rank_order, "tp-cp-ep-dp-pp");
  EXPECT_TRUE(plan.collective.empty());
  EXPECT_TRUE(plan.layers_per_stage.empty());
  EXPECT_TRUE(plan.overlap.data_parallel);
  EXPECT_FALSE(plan.overlap.tensor_parallel);
}

TEST(PlanRecompute, OfStagesThatAllDoTheSameIsOnePolicy) {
  PlanQuestion question;
  question.request.pipeline_parallel = 2;
  question.request.recompute_per_stage.assign(2, {RecomputeMode::full, 3});
  const Plan plan = question.answer().value();
  EXPECT_TRUE(plan.recompute_per_stage.empty());
  EXPECT_EQ(plan.recompute, (Recompute{RecomputeMode::full, 3}));
  EXPECT_EQ(recompute_of(plan, 1), plan.recompute);
}

TEST(PlanRecompute, OfUnlikeStagesIsWhatRepeatsTheMost) {
  PlanQuestion question;
  question.request.pipeline_parallel = 4;
  question.request.recompute_per_stage = {
      {RecomputeMode::full, 3}, {RecomputeMode::full, 0}, {RecomputeMode::selective, 0}, {}};
  const Plan plan = question.answer().value();
  EXPECT_EQ(plan.recompute, (Recompute{RecomputeMode::full, 0}));  // all layers
  EXPECT_EQ(recompute_of(plan, 2).mode, RecomputeMode::selective);
  EXPECT_TRUE(recomputes(plan, RecomputeMode::none));
  EXPECT_FALSE(recomputes(plan, RecomputeMode::automatic));
}

TEST(PlanDefaults, InterleaveWhenThereAreVirtualStages) {
  PlanQuestion question;
  question.request.pipeline_parallel = 4;
  question.request.virtual_stages = 2;
  EXPECT_EQ(question.answer()->schedule->name, "interleaved-1f1b");
}

TEST(PlanDefaults, TakeSequenceParallelismFromTheStackBehindTensorParallelism) {
  PlanQuestion question;
  question.request.tensor_parallel = 2;
  question.training.stack.sequence_parallel = true;
  EXPECT_TRUE(question.answer()->sequence_parallel);
  question.training.stack.sequence_parallel = false;
  EXPECT_FALSE(question.answer()->sequence_parallel);
  question.request.sequence_parallel = true;
  EXPECT_TRUE(question.answer()->sequence_parallel);
  question.request.tensor_parallel = 1;  // nothing to be parallel over
  EXPECT_FALSE(question.answer()->sequence_parallel);
}

TEST(PlanDefaults, TakeSequenceParallelismForExpertsOnEveryStack) {  // handbook §4: required
  PlanQuestion question;
  question.make_experts();
  question.request.tensor_parallel = 2;
  question.training.stack.sequence_parallel = false;
  EXPECT_TRUE(question.answer()->sequence_parallel);
}

TEST(PlanDefaults, TakeTheZeroStageOfTheStackOrThreeWithAShardingGroup) {
  PlanQuestion question;
  question.training.stack.zero_stage = 1;
  EXPECT_EQ(question.answer()->zero_stage, 1);
  question.request.sharding_group = 8;
  EXPECT_EQ(question.answer()->zero_stage, 3);
  EXPECT_EQ(question.answer()->sharding_group, 8);
  question.request.zero_stage = 2;
  EXPECT_EQ(question.answer()->zero_stage, 2);
}

TEST(PlanDefaults, ShardOverDataAndContextRanks) {
  PlanQuestion question;
  question.request.context_parallel = 4;
  question.request.pipeline_parallel = 2;
  const Plan plan = question.answer().value();
  EXPECT_EQ(plan.data_parallel, 8);    // 64 / (4 · 2)
  EXPECT_EQ(plan.sharding_group, 32);  // D·c
}

TEST(PlanDefaults, GiveExpertDataParallelismWhatIsLeftOfAStage) {
  PlanQuestion question;
  question.make_experts();
  question.request.tensor_parallel = 4;
  question.request.pipeline_parallel = 2;
  question.request.expert_parallel = 4;
  question.request.expert_tensor_parallel = 2;
  EXPECT_EQ(question.answer()->expert_data_parallel, 4);  // t·c·D / (e·e_t) = 32 / 8
}

TEST(PlanDefaults, WaitForTheOptimizerUnlessScheduleOrStackDoesNot) {
  PlanQuestion question;
  question.request.pipeline_parallel = 2;
  EXPECT_TRUE(question.answer()->optimizer_barrier);
  question.request.schedule = "zb-h2";  // post-validation, handbook §8
  EXPECT_FALSE(question.answer()->optimizer_barrier);
  question.training.stack.limits.post_validation = false;
  EXPECT_TRUE(question.answer()->optimizer_barrier);
  question.training.stack.limits.post_validation = true;
  question.request.optimizer_barrier = true;
  EXPECT_TRUE(question.answer()->optimizer_barrier);
  question.request = {};
  question.training.stack.optimizer_barrier = false;
  EXPECT_FALSE(question.answer()->optimizer_barrier);
}

TEST(PlanDefaults, AreOverriddenKeyByKey) {
  PlanQuestion question;
  question.training.stack.overlap = {.tensor_parallel = false, .data_parallel = true};
  question.request.overlap.tensor_parallel = true;
  question.request.overlap.data_parallel = false;
  EXPECT_TRUE(question.answer()->overlap.tensor_parallel);
  EXPECT_FALSE(question.answer()->overlap.data_parallel);
}

// The planner's faster function gives the same plan as make_plan.
TEST(PlanIfLegal, IsWhatMakePlanGives) {
  PlanQuestion question;
  question.request.tensor_parallel = 8;
  const auto quick =
      plan_if_legal(question.request, question.model, question.cluster, question.training);
  ASSERT_TRUE(quick.has_value());
  EXPECT_EQ(quick->data_parallel, question.answer()->data_parallel);
  EXPECT_EQ(quick->microbatches, question.answer()->microbatches);
  question.request.tensor_parallel = 5;
  EXPECT_FALSE(plan_if_legal(question.request, question.model, question.cluster, question.training)
                   .has_value());
}

}  // namespace
}  // namespace trainyard
