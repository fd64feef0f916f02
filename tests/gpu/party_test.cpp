// What calibrate measures of collectives on a device: the transport supports every operation, and
// results of ranks that share a device say so.
#include <gtest/gtest.h>

#include "executor/cuda/device_party.h"

namespace trainyard {
namespace {

TEST(DeviceParty, TimesEveryOperationThatIsMeasured) {
  Plan plan;
  plan.data_parallel = 2;
  const RankLayout layout(plan, 1);
  const auto all = make_stand_in_transport(layout, 0);
  const auto party =
      make_device_party(*all, [&](int) { return make_stand_in_transport(layout, 0); });
  ASSERT_TRUE(party) << party.error().message;
  EXPECT_TRUE((*party)->shared());
  const auto group = (*party)->party().group(2);
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_EQ((*group)->host().ranks(), 2);
  for (const auto operation : {CollectiveOperation::all_reduce, CollectiveOperation::all_gather,
                               CollectiveOperation::reduce_scatter, CollectiveOperation::all_to_all,
                               CollectiveOperation::broadcast, CollectiveOperation::send}) {
    for (const int count : {256, 1024}) {
      const auto took = (*group)->exchange(operation, count)->time_of_one(1);
      ASSERT_TRUE(took) << took.error().message;
      EXPECT_GT(*took, 0);
    }
  }
}

// A rank with a device of its own uses NCCL, whose calls are enqueued and run later.
TEST(DeviceParty, TimesSeveralInARowByNccl) {
  const auto all = make_single_rank_transport();
  const auto party = make_device_party(*all, [](int) { return make_single_rank_transport(); });
  ASSERT_TRUE(party) << party.error().message;
  EXPECT_FALSE((*party)->shared());
  const auto group = (*party)->party().group(1);
  ASSERT_TRUE(group) << group.error().message;
  const auto exchange = (*group)->exchange(CollectiveOperation::all_reduce, 256);
  ASSERT_GT(exchange->most_in_a_row(), 1);
  for (const int in_a_row : {1, exchange->most_in_a_row()}) {
    const auto took = exchange->time_of_one(in_a_row);
    ASSERT_TRUE(took) << took.error().message;
    EXPECT_GT(*took, 0);
  }
}

}  // namespace
}  // namespace trainyard
