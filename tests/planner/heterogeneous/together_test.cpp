// Groups of unlike nodes used as one cluster, compared with a search of a cluster of like nodes,
// all of the slower group's kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/heterogeneous/groups.h"
#include "planner/heterogeneous/request.h"
#include "planner/planner.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

// The best plan of one cluster that has the nodes of all groups, all of `group`'s kind.
Candidate best_of_one_cluster(const GroupedJob& groups, std::size_t group) {
  Cluster cluster = groups.cluster.groups[group];
  cluster.nodes = 0;
  for (const Cluster& own : groups.cluster.groups) cluster.nodes += own.nodes;
  const PreparedJob job = prepare({groups.model, cluster, groups.training});
  return search(job, {}, analytic_evaluator(job)).plans.at(0);
}

TEST(UnlikeTogether, OfLikeNodesAreOneCluster) {
  GroupedJob groups = groups_of({1, 1});
  groups.cluster.boundary.bandwidth = BytesPerSecond(1e15);  // no slower than inside
  const GroupedPlans found = plan_groups(groups);
  ASSERT_TRUE(found.together);
  EXPECT_EQ(found.together->step_time, best_of_one_cluster(groups, 0).estimate.step_time);
  EXPECT_LE(in_order(found).front().step_time, found.together->step_time);
}

// The groups have the same network, so the device that is slowest in everything sets the pace.
TEST(UnlikeTogether, TakeAsLongAsTheSlowestAlone) {
  for (const std::vector<double>& slowness :
       {std::vector<double>{1, 1.1}, std::vector<double>{3, 1}, std::vector<double>{1, 1.2, 1.1}}) {
    GroupedJob groups = groups_of(slowness);
    groups.cluster.boundary.bandwidth = BytesPerSecond(1e15);
    const auto slowest = static_cast<std::size_t>(
        std::max_element(slowness.begin(), slowness.end()) - slowness.begin());
    const GroupedPlans found = plan_groups(groups);
    ASSERT_TRUE(found.together);
    if (found.together->order.size() < slowness.size()) continue;  // without the slowest
    const Candidate expected = best_of_one_cluster(groups, slowest);
    EXPECT_NEAR(found.together->step_time / expected.estimate.step_time, 1, 1e-9);
    for (const GroupShare& share : found.together->shares) {
      EXPECT_EQ(share.peak_memory, expected.estimate.peak_memory);
    }
  }
}

// Beside the faster group's compute less communication would hide, but it waits for the slower one.
TEST(UnlikeTogether, TakeNoLongerThanTheSlowestWhoseComputeHidesCommunication) {
  GroupedJob groups = groups_of({1, 4});
  groups.training.stack.overlap.data_parallel = true;
  for (Cluster& group : groups.cluster.groups) group.inter.bandwidth = group.inter.bandwidth / 20;
  PlanRequest request{.micro_batch = 1};
  request.zero_stage = 3;
  const auto priced =
      price_grouped(groups, {.use = GroupUse::together, .order = {0, 1}, .plan = request});
  ASSERT_TRUE(priced) << priced.error().message;
  const auto step_on = [&](Cluster cluster) {
    cluster.nodes = 2;
    const auto plan = make_plan(request, groups.model, cluster, groups.training);
    return estimate(prepare({groups.model, cluster, groups.training}), plan.value());
  };
  const Estimate fast = step_on(groups.cluster.groups[0]), slow = step_on(groups.cluster.groups[1]);
  EXPECT_GT(fast.breakdown.data_parallel, slow.breakdown.data_parallel);
  EXPECT_NEAR(priced->step_time / slow.step_time, 1, 1e-9);
}

TEST(UnlikeTogether, MustFitTheLeastMemory) {
  GroupedJob groups = groups_of({1, 1});
  const GroupedPlans roomy = plan_groups(groups);
  ASSERT_TRUE(roomy.together);
  const Bytes held = roomy.together->shares.at(1).peak_memory;
  groups.cluster.groups[1].device.memory = held * 0.9;
  const GroupedPlans tight = plan_groups(groups);
  ASSERT_TRUE(tight.together);
  EXPECT_LE(tight.together->shares.at(1).peak_memory, held * 0.9);
  EXPECT_GE(tight.together->step_time, roomy.together->step_time);
}

TEST(UnlikeTogether, MeetOverTheNarrowestNetwork) {
  GroupedJob groups = groups_of({1, 1});
  groups.cluster.boundary.bandwidth = nics_of_a_device(groups.cluster.groups[0]) / 4;
  GroupedJob narrow = groups;
  narrow.cluster.boundary.bandwidth.reset();
  for (Cluster& group : narrow.cluster.groups) group.inter.bandwidth = group.inter.bandwidth / 4;
  const GroupedPlans found = plan_groups(groups);
  ASSERT_TRUE(found.together);
  EXPECT_NEAR(found.together->step_time / best_of_one_cluster(narrow, 0).estimate.step_time, 1,
              1e-9);
}

// A found plan prices to itself.
TEST(UnlikeTogether, AreWhatTheirRequestSays) {
  const GroupedJob groups = groups_of({1, 1.1});
  const GroupedPlans found = plan_groups(groups);
  ASSERT_TRUE(found.together);
  const auto again = price_grouped(groups, request_of(*found.together));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->step_time, found.together->step_time);
  EXPECT_EQ(again->use, GroupUse::together);
}

}  // namespace
}  // namespace trainyard
