// Which orders of the ranks differ for a plan.
#include "planner/rank_orders.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace trainyard {
namespace {

using Orders = std::vector<std::string>;

TEST(RankOrders, AreNoneOfOneDimension) {
  Plan plan;
  EXPECT_EQ(other_rank_orders(plan), Orders{});
  plan.pipeline_parallel = 8;
  EXPECT_EQ(other_rank_orders(plan), Orders{});
}

TEST(RankOrders, ChangeOnlyDimensionsOfSeveralRanks) {
  Plan plan;
  plan.tensor_parallel = 2;
  plan.pipeline_parallel = 4;
  EXPECT_EQ(other_rank_orders(plan), Orders{"pp-tp-cp-ep-dp"});
  plan.rank_order = "pp-dp-tp-ep-cp";
  EXPECT_EQ(other_rank_orders(plan), Orders{"tp-pp-dp-ep-cp"});
}

// n dimensions have n! orders; one is the plan's own.
TEST(RankOrders, AreAllThatThereAre) {
  Plan plan;
  plan.tensor_parallel = plan.data_parallel = plan.pipeline_parallel = 2;
  EXPECT_EQ(other_rank_orders(plan).size(), 5u);
  plan.context_parallel = 2;
  EXPECT_EQ(other_rank_orders(plan).size(), 23u);
  plan.expert_parallel = 2;
  Orders all = other_rank_orders(plan);
  EXPECT_EQ(all.size(), 119u);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_FALSE(std::binary_search(all.begin(), all.end(), plan.rank_order));
}

// Expert tensor ranks take the place of tp, expert replicas that of dp.
TEST(RankOrders, KnowTheRanksOfExperts) {
  Plan plan;
  plan.context_parallel = 8;
  plan.expert_parallel = 2;
  plan.expert_tensor_parallel = 2;
  EXPECT_EQ(other_rank_orders(plan).size(), 23u);  // cp, ep, tp and dp
  plan.expert_parallel = 8;
  plan.expert_tensor_parallel = 1;
  EXPECT_EQ(other_rank_orders(plan).size(), 1u);  // cp and ep
}

}  // namespace
}  // namespace trainyard
