#include "cli/text/plan.h"

#include <gtest/gtest.h>

#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

Plan plan_of_64_replicas() {
  Plan plan;
  plan.schedule = find_schedule("1f1b");
  plan.data_parallel = 64;
  plan.zero_stage = 2;
  plan.sharding_group = 64;
  return plan;
}

TEST(PlanLine, SaysNothingOfWhatIsUsual) {
  EXPECT_EQ(plan_line(plan_of_64_replicas()),
            "dp 64 · micro-batch 1 × 1 · ZeRO-2 · recompute none");
}

TEST(PlanLine, NamesGroupsOrderAndCollectiveThatAreNotTheUsualOnes) {
  Plan plan = plan_of_64_replicas();
  plan.sharding_group = 16;
  plan.rank_order = "tp-cp-ep-pp-dp";
  plan.collective = "tree";
  EXPECT_EQ(plan_line(plan),
            "dp 64 · micro-batch 1 × 1 · ZeRO-2 over groups of 16 · recompute none · "
            "rank order tp-cp-ep-pp-dp · collectives by tree");
}

// Under ZeRO-0 a sharding group shards nothing.
TEST(PlanLine, NamesNoGroupWhereNothingIsSharded) {
  Plan plan = plan_of_64_replicas();
  plan.zero_stage = 0;
  plan.sharding_group = 16;
  EXPECT_EQ(plan_line(plan), "dp 64 · micro-batch 1 × 1 · ZeRO-0 · recompute none");
}

}  // namespace
}  // namespace trainyard
