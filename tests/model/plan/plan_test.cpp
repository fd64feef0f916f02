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

}  // namespace
}  // namespace trainyard
