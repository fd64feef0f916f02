#include "cli/plan/explain_option.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_pinned_keys(text);
  return parsed ? "" : parsed.error().where + ": " + parsed.error().message;
}

TEST(ExplainOption, TakesShortAndLongNames) {
  const auto pinned = parse_pinned_keys("tp=8,pipeline_parallel=16,zero=3,recompute=full");
  ASSERT_TRUE(pinned);
  EXPECT_EQ(pinned_words(*pinned),
            "tensor_parallel 8, pipeline_parallel 16, zero_stage 3, recompute full");
}

TEST(ExplainOption, NarrowsTheSpace) {
  const auto pinned = parse_pinned_keys("tp=8,mb=2,schedule=1f1b,ep=4,etp=2,cp=1,dp=16,vp=3");
  ASSERT_TRUE(pinned);
  PlannerKeys before;
  before.tensor_parallel = {1, 2};
  before.zero_stage = {1};
  const SearchSpace space = pinned_keys(before, *pinned);
  EXPECT_EQ(space.tensor_parallel, Numbers({8}));
  EXPECT_EQ(space.micro_batch, Numbers({2}));
  EXPECT_EQ(space.schedule, std::vector<std::string>({"1f1b"}));
  EXPECT_EQ(space.expert_parallel, Numbers({4}));
  EXPECT_EQ(space.expert_tensor_parallel, Numbers({2}));
  EXPECT_EQ(space.context_parallel, Numbers({1}));
  EXPECT_EQ(space.data_parallel, Numbers({16}));
  EXPECT_EQ(space.virtual_stages, Numbers({3}));
  EXPECT_EQ(space.zero_stage, Numbers({1})) << "what is not pinned stays";
}

TEST(ExplainOption, TakesEveryKeyThatThePlannerChooses) {
  const auto pinned = parse_pinned_keys(
      "rank_order=tp-cp-ep-pp-dp,sharding_group=all,sequence_parallel=false,offload=optimizer,"
      "context_parallel_algorithm=ulysses,collective=ring,layers_per_stage=[3,5],"
      "recompute={\"full\":2}");
  ASSERT_TRUE(pinned) << pinned.error().message;
  const PlannerKeys keys = pinned_keys({}, *pinned);
  EXPECT_EQ(keys.rank_order, std::vector<std::string>({"tp-cp-ep-pp-dp"}));
  EXPECT_EQ(keys.sharding_group, Numbers({kShardOverAll}));
  EXPECT_EQ(keys.sequence_parallel, std::vector<bool>({false}));
  EXPECT_EQ(keys.offload, std::vector<std::string>({"optimizer"}));
  EXPECT_EQ(keys.context_parallel_algorithm, std::vector<std::string>({"ulysses"}));
  EXPECT_EQ(keys.collective, std::vector<std::string>({"ring"}));
  EXPECT_EQ(keys.layers_per_stage, std::vector<int>({3, 5}));
  ASSERT_EQ(keys.recompute.size(), 1U);
  EXPECT_EQ(keys.recompute[0].every_stage, (Recompute{RecomputeMode::full, 2}));
}

TEST(ExplainOption, RefusesWithWhatIsAllowed) {
  EXPECT_EQ(error_of("tp=x").find("--explain: /tensor_parallel: found \"x\"; allowed: a whole"), 0U)
      << error_of("tp=x");
  EXPECT_EQ(error_of("tp=-1"),
            "--explain: /tensor_parallel: found -1; allowed: a whole number from 1 to 1000000");
  EXPECT_EQ(error_of("recompute=some"),
            "--explain: /recompute: found \"some\"; allowed: \"none\", \"selective\", \"full\" "
            "(did you mean \"none\"?)");
  EXPECT_NE(error_of("schedule=2f2b").find("1f1b"), std::string::npos);
  EXPECT_NE(error_of("schedule=zb_h1").find("zb-h1"), std::string::npos)
      << error_of("schedule=zb_h1");
  EXPECT_NE(error_of("tensor_paralel=2").find("nearest tensor_parallel"), std::string::npos);
  EXPECT_EQ(error_of("tp=8,tensor_parallel=4"),
            "--explain: found tensor_parallel twice, allowed once");
  EXPECT_NE(error_of("deadline=3").find("found key \"deadline\""), std::string::npos);
  for (const std::string_view text : {"", "tp", "tp=8,", "tp=8 pp=2", "=8", "tp=99999999999"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

}  // namespace
}  // namespace trainyard
