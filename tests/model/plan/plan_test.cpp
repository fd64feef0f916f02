#include "model/plan/plan.h"

#include <gtest/gtest.h>

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

TEST(PlanRefusal, PrecisionThatTheDeviceHasNoRateFor) {
  PlanQuestion question;
  question.training.precision = *find_precision_recipe("fp16");
  EXPECT_TRUE(question.answer().has_value());
  question.training.precision = *find_precision_recipe("fp8");
  const auto refused = question.answer();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().where, "/training/precision");
  EXPECT_EQ(refused.error().message,
            "found fp8, which a device does not support; allowed bf16, fp16");
}

}  // namespace
}  // namespace trainyard
