// Groups of unlike nodes, compared with one cluster of like nodes, with every split of the layers,
// and with devices of exactly half the speed.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "planner/heterogeneous/pipeline.h"
#include "planner/heterogeneous/replicas.h"
#include "tests/planner/jobs.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

GroupedJob two_groups(double slowness) { return groups_of({1, slowness}); }

// The slowest of all ranks is included, but it does not slow down what it waits for itself.
TEST(UnlikeGroups, OfLikeNodesAreOneCluster) {
  GroupedJob groups = two_groups(1);
  groups.training.stack.rank_spread = 0.02;
  Cluster cluster = groups.cluster.groups[0];
  cluster.nodes = 2;
  const PreparedJob job = prepare({groups.model, cluster, groups.training});
  for (const bool overlapped : {false, true}) {
    PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4, .schedule = "1f1b"};
    request.overlap.pipeline = overlapped;
    const Plan plan = make_plan(request, groups.model, job.job.cluster, groups.training).value();
    const Estimate whole = estimate(job, plan);
    groups.cluster.boundary.bandwidth.reset();
    const GroupedPlan found = price_pipeline(groups, request, {0, 1});
    EXPECT_NEAR(found.step_time / whole.step_time, 1, 1e-9);
    EXPECT_EQ(found.shares[0].stages, 2);
    EXPECT_EQ(found.shares[0].layers, 6);
    EXPECT_EQ(std::max(found.shares[0].peak_memory, found.shares[1].peak_memory),
              whole.peak_memory);
    groups.cluster.boundary.bandwidth = BytesPerSecond(1e15);  // wider than the NICs
    EXPECT_LT(price_pipeline(groups, request, {0, 1}).step_time, found.step_time);
    groups.cluster.boundary.bandwidth = BytesPerSecond(1e8);
    EXPECT_GT(price_pipeline(groups, request, {0, 1}).step_time, found.step_time);
  }
}

// Where the bandwidth between groups is not named, ranks of one stage share their node's NICs there
// as they do between stages of one cluster: here two ranks of a node's four, one NIC.
TEST(UnlikeGroups, OfLikeNodesSendAsOneCluster) {
  GroupedJob groups = two_groups(1);
  for (Cluster& group : groups.cluster.groups) group.inter.nics_per_node = 1;
  Cluster cluster = groups.cluster.groups[0];
  cluster.nodes = 2;
  const PreparedJob job = prepare({groups.model, cluster, groups.training});
  PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4, .schedule = "1f1b"};
  const Plan plan = make_plan(request, groups.model, job.job.cluster, groups.training).value();
  const GroupedPlan found = price_pipeline(groups, request, {0, 1});
  EXPECT_NEAR(found.step_time / estimate(job, plan).step_time, 1, 1e-9);
}

// The breakdown sums to the step: nothing is left out or counted twice.
TEST(UnlikeGroups, HaveStepsOfTheirParts) {
  const GroupedPlans found = plan_groups(groups_of({1, 1.5}));
  ASSERT_GE(in_order(found).size(), 4u);
  for (const GroupedPlan& plan : in_order(found)) {
    EXPECT_NEAR(plan.breakdown.total() / plan.step_time, 1, 1e-9);
    EXPECT_GE(plan.breakdown.bubble, Seconds(0));
    EXPECT_GT(plan.breakdown.compute, Seconds(0));
  }
}

// Second computation: every split of the layers over the same degrees.
TEST(UnlikeGroups, DealLayersAsTheBestOfAllSplits) {
  const GroupedJob groups = two_groups(2);
  const auto found = plan_groups(groups).pipeline;
  ASSERT_TRUE(found);
  ASSERT_EQ(found->plan.pipeline_parallel, 2);
  PlanRequest request{.tensor_parallel = found->plan.tensor_parallel,
                      .pipeline_parallel = 2,
                      .schedule = "1f1b",
                      .data_parallel = found->plan.data_parallel,
                      .micro_batch = found->plan.micro_batch};
  Seconds best(1e9);
  for (int layers = 0; layers <= 12; ++layers) {
    request.layers_per_stage = {layers, 12 - layers};
    best = std::min(best, price_pipeline(groups, request, found->order).step_time);
  }
  EXPECT_LE(found->step_time, best * 1.014);  // of the formula that is minimised (handbook §8)
  EXPECT_GT(found->shares[0].layers, found->shares[1].layers);
}

// Two stages let two micro-batches pass in the time of one round trip: m·(ΣT + 2 sends)/2. The time
// of a send follows from halving the bandwidth; without a boundary the step is (m + 1)·T.
TEST(UnlikeGroups, WaitForOverlappedSendsThereAndBack) {
  GroupedJob groups = two_groups(1);
  groups.training.stack.overlap_slowdown = 0;
  groups.cluster.boundary.latency = Seconds(0);
  PlanRequest request{.tensor_parallel = 4, .pipeline_parallel = 2, .schedule = "1f1b"};
  request.overlap.pipeline = true;
  const auto step_at = [&](double bandwidth) {
    groups.cluster.boundary.bandwidth = BytesPerSecond(bandwidth);
    return price_pipeline(groups, request, {0, 1}).step_time;
  };
  const double m = 96;
  const Seconds pass = step_at(1e15) / (m + 1);
  const Seconds once = step_at(1e6), twice = step_at(0.5e6);
  const Seconds send = (twice - once) / m;
  EXPECT_NEAR(once / (m * (pass + send)), 1, 0.02);
  // A send that is hidden behind a pass still makes micro-batches wait.
  const double hidden = 1e6 * (send / (0.9 * pass));
  EXPECT_NEAR(step_at(hidden) / (m * 1.9 * pass), 1, 0.03);
}

// A send that is not overlapped is paid once in the forward passes before the boundary and once in
// the gradients after it. Both stages are equally slow, and m micro-batches pass the slower one.
TEST(UnlikeGroups, PayEverySendThatIsNotOverlappedOnce) {
  GroupedJob groups = two_groups(1);
  groups.cluster.boundary.latency = Seconds(0);
  PlanRequest request{.tensor_parallel = 4, .pipeline_parallel = 2, .schedule = "1f1b"};
  request.overlap.pipeline = false;
  const auto step_at = [&](double bandwidth) {
    groups.cluster.boundary.bandwidth = BytesPerSecond(bandwidth);
    return price_pipeline(groups, request, {0, 1}).step_time;
  };
  request.overlap.pipeline = true;
  groups.training.stack.overlap_slowdown = 0;
  const Seconds send = (step_at(0.5e6) - step_at(1e6)) / 96;
  request.overlap.pipeline = false;
  // (m + 1) sends more: one micro-batch passes both stages, the others one.
  EXPECT_NEAR((step_at(0.5e6) - step_at(1e6)) / (97 * send), 1, 0.01);
}

// ---- Three groups --------------------------------------------------------------------------

TEST(UnlikeGroups, OfThreeLikeNodesAreOneCluster) {
  GroupedJob groups = groups_of({1, 1, 1});
  Cluster cluster = groups.cluster.groups[0];
  cluster.nodes = 3;
  const PreparedJob job = prepare({groups.model, cluster, groups.training});
  for (const bool overlapped : {false, true}) {
    PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 6, .schedule = "1f1b"};
    request.overlap.pipeline = overlapped;
    const Plan plan = make_plan(request, groups.model, job.job.cluster, groups.training).value();
    const Estimate whole = estimate(job, plan);
    const GroupedPlan found = price_pipeline(groups, request, {2, 0, 1});
    EXPECT_NEAR(found.step_time / whole.step_time, 1, 1e-9);
    for (const GroupShare& share : found.shares) {
      EXPECT_EQ(share.stages, 2);
      EXPECT_EQ(share.layers, 4);
    }
  }
}

// The shortest step over every order of the groups and every split of the layers, for the same
// degrees.
Seconds best_of_all_splits(const GroupedJob& groups, PlanRequest request) {
  Seconds best(1e9);
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    for (int first = 0; first <= groups.model.layers; ++first) {
      for (int second = 0; first + second <= groups.model.layers; ++second) {
        request.layers_per_stage = {first, second, groups.model.layers - first - second};
        best = std::min(best, price_pipeline(groups, request, order).step_time);
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(UnlikeGroups, DealLayersToThreeGroupsAsTheBestOfAllOrdersAndSplits) {
  for (const std::vector<double>& slowness :
       {std::vector<double>{1, 1.5, 2}, {2, 1, 1.25}, {1, 1, 1.75}}) {
    const GroupedJob groups = groups_of(slowness);
    const auto found = plan_groups(groups).pipeline;
    ASSERT_TRUE(found);
    ASSERT_EQ(found->order.size(), 3u);
    ASSERT_EQ(found->plan.pipeline_parallel, 3);
    const Seconds best = best_of_all_splits(groups, {.tensor_parallel = found->plan.tensor_parallel,
                                                     .pipeline_parallel = 3,
                                                     .schedule = "1f1b",
                                                     .data_parallel = found->plan.data_parallel,
                                                     .micro_batch = found->plan.micro_batch});
    EXPECT_LE(found->step_time, best * (1 + 1e-12));
  }
}

TEST(UnlikeGroups, DoNotDependOnTheOrderInWhichTheyAreWritten) {
  std::vector<double> slowness = {1, 1.5, 2.5};
  const GroupedPlans first = plan_groups(groups_of(slowness));
  ASSERT_TRUE(first.pipeline && first.replicas);
  while (std::next_permutation(slowness.begin(), slowness.end())) {
    if (!is_next_tried()) continue;
    const GroupedPlans found = plan_groups(groups_of(slowness));
    EXPECT_NEAR(found.pipeline->step_time / first.pipeline->step_time, 1, 1e-9);
    EXPECT_NEAR(found.replicas->step_time / first.replicas->step_time, 1, 1e-9);
  }
}

// A group that is a thousand times as slow only delays the others, so pipeline and replicas leave
// it out.
TEST(UnlikeGroups, LeaveOutWhatOnlyDelays) {
  const GroupedPlans found = plan_groups(groups_of({1, 1000, 1.5}));
  const GroupedPlans without = plan_groups(groups_of({1, 1.5}));
  ASSERT_TRUE(found.replicas && without.replicas);
  EXPECT_EQ(found.replicas->step_time, without.replicas->step_time);
  EXPECT_EQ(found.replicas->shares[1].stages, 0);
  EXPECT_EQ(found.replicas->order, (std::vector<std::size_t>{0, 2}));
  EXPECT_LE(in_order(found).front().step_time, in_order(without).front().step_time);
  EXPECT_EQ(in_order(found).size(), 7u);  // both pipelines, replicas, together, each alone
}

// A group's narrow NICs limit its own boundaries, not those of the others.
TEST(UnlikeGroups, HaveABoundaryForEveryPair) {
  GroupedJob groups = groups_of({1, 1, 1});
  groups.cluster.groups[2].inter.bandwidth /= 4;
  groups.cluster.groups[1].inter.latency = Seconds(1e-3);
  const BytesPerSecond wide = nics_of_a_device(groups.cluster.groups[0]);
  EXPECT_EQ(boundary_between(groups.cluster, 0, 1).bandwidth, wide);
  EXPECT_EQ(boundary_between(groups.cluster, 0, 1).latency, Seconds(1e-3));
  EXPECT_NEAR(boundary_between(groups.cluster, 2, 0).bandwidth / wide, 0.25, 1e-12);
  EXPECT_EQ(boundary_between(groups.cluster, 2, 0).latency, groups.cluster.groups[0].inter.latency);
  // At the end of the row the slow group has one boundary, in the middle two.
  const PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 6, .schedule = "1f1b"};
  groups.cluster.groups[1].inter.latency = groups.cluster.groups[0].inter.latency;
  EXPECT_LT(price_pipeline(groups, request, {0, 1, 2}).boundary,
            price_pipeline(groups, request, {0, 2, 1}).boundary);
}

// ---- Ways ----------------------------------------------------------------------------------

TEST(UnlikeGroups, DealLayersBetterThanEvenly) {
  const GroupedPlans found = plan_groups(two_groups(2));
  ASSERT_TRUE(found.pipeline && found.even_pipeline);
  EXPECT_LT(found.pipeline->step_time, found.even_pipeline->step_time);
  EXPECT_EQ(found.even_pipeline->shares[0].layers, 6);
}

TEST(UnlikeGroups, AreListedFastestFirst) {
  const GroupedPlans found = plan_groups(two_groups(2));
  const std::vector<GroupedPlan> plans = in_order(found);
  ASSERT_EQ(plans.size(), 6u);  // both pipelines, replicas, together, either alone
  for (std::size_t i = 1; i < plans.size(); ++i) {
    EXPECT_LE(plans[i - 1].step_time, plans[i].step_time);
  }
}

// Two thirds of the samples go to devices of twice the speed, so both groups take the same time.
TEST(UnlikeGroups, GiveFastReplicasTwiceTheMicroBatches) {
  const GroupedJob groups = two_groups(2);
  const auto found = plan_groups(groups).replicas;
  ASSERT_TRUE(found);
  const GroupShare& fast = found->shares.at(0);
  const GroupShare& slow = found->shares.at(1);
  EXPECT_EQ((fast.replicas * fast.microbatches + slow.replicas * slow.microbatches) *
                found->plan.micro_batch,
            96);
  EXPECT_EQ(fast.replicas, slow.replicas);
  EXPECT_NEAR(fast.microbatches / static_cast<double>(slow.microbatches), 2, 0.35);
  EXPECT_GT(found->boundary, Seconds(0));
}

// Second computation: every number of recomputed layers is asked for by name, on each group
// separately.
TEST(UnlikeGroups, RepeatAsFewLayersOfReplicasAsFit) {
  GroupSearchOptions any;
  any.uses = {GroupUse::replicas};
  GroupSearchOptions named = any;
  named.space.recompute = {{{RecomputeMode::none, 0}, {}}, {{RecomputeMode::selective, 0}, {}}};
  for (int layers = 0; layers < 12; ++layers) {
    named.space.recompute.push_back({{RecomputeMode::full, layers}, {}});
  }
  const GroupedJob roomy = two_groups(1.5);
  const auto most = plan_groups(roomy, any).replicas;
  ASSERT_TRUE(most);
  int some_layers = 0;
  for (int percent = 40; percent < 100; percent += kSanitized ? 12 : 4) {
    GroupedJob job = roomy;
    job.cluster.groups[1].device.memory = most->shares[1].peak_memory * (percent / 100.0);
    const auto found = plan_groups(job, any).replicas;
    const auto expected = plan_groups(job, named).replicas;
    ASSERT_EQ(found.has_value(), expected.has_value()) << percent;
    if (!found) continue;
    EXPECT_NEAR(found->step_time / expected->step_time, 1, 1e-12) << percent;
    const int layers = found->shares[1].recompute.every_stage.full_layers;
    if (layers > 0 && layers < 12) ++some_layers;
  }
  EXPECT_GT(some_layers, 0);
}

// One node and three nodes: 100 is no multiple of the 3, 6 or 12 replicas of three nodes, but is x
// + 3·y.
TEST(UnlikeGroups, ShareOutABatchThatNeitherGroupDivides) {
  GroupedJob groups = two_groups(1);
  groups.cluster.groups[1].nodes = 3;
  groups.training.global_batch = 100;
  const auto found = plan_groups(groups).replicas;
  ASSERT_TRUE(found);
  int sequences = 0;
  for (const GroupShare& share : found->shares) {
    EXPECT_GT(share.replicas * share.microbatches, 0);
    sequences += share.replicas * share.microbatches * found->plan.micro_batch;
  }
  EXPECT_EQ(sequences, 100);
}

// One group has a quarter of the NICs' bandwidth, which is then the bandwidth of the boundary.
TEST(UnlikeGroups, TakeAsLongWhicheverIsWrittenFirst) {
  GroupedJob groups = two_groups(1.5);
  groups.cluster.groups[1].inter.bandwidth /= 4;
  GroupedJob swapped = groups;
  std::swap(swapped.cluster.groups[0], swapped.cluster.groups[1]);
  for (const bool overlapped : {false, true}) {
    PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4, .schedule = "1f1b"};
    request.overlap.pipeline = overlapped;
    const GroupedPlan one = price_pipeline(groups, request, {0, 1});
    EXPECT_NEAR(price_pipeline(swapped, request, {1, 0}).step_time / one.step_time, 1, 1e-12);
    EXPECT_GT(one.boundary, Seconds(0));
  }
}

TEST(UnlikeGroups, KeepEachDevicesMemory) {
  GroupedJob groups = two_groups(1);
  groups.cluster.groups[1].device.memory = Bytes(1e6);  // nothing fits
  const GroupedPlans found = plan_groups(groups);
  EXPECT_FALSE(found.pipeline);
  EXPECT_FALSE(found.replicas);
  EXPECT_TRUE(found.alone[0]);
  EXPECT_FALSE(found.alone[1]);
}

// The best plan of every way takes longer than all devices at their peak. With a second group of
// half the speed, three quarters of the peak are left.
TEST(UnlikeGroups, KnowABoundOfEveryWay) {
  const GroupedPlans like = plan_groups(two_groups(1));
  const GroupedPlans slower = plan_groups(two_groups(2));
  EXPECT_NEAR(slower.bound / like.bound, 4.0 / 3, 1e-9);
  for (const GroupedPlan& plan : in_order(slower)) EXPECT_GE(plan.step_time, slower.bound);
  EXPECT_NEAR(gap_of(slower), 1 - slower.bound / in_order(slower).front().step_time, 1e-12);
}

TEST(UnlikeGroups, StopWhenTheyAreAskedTo) {
  EXPECT_TRUE(plan_groups(two_groups(2)).complete);
  const std::atomic<bool> interrupted = true;
  const GroupedPlans found = plan_groups(two_groups(2), {.interrupted = &interrupted});
  EXPECT_FALSE(found.complete);
  EXPECT_FALSE(found.pipeline || found.replicas || found.alone[1]);
  EXPECT_FALSE(plan_groups(two_groups(2), {.time_limit = Seconds(1e-6)}).complete);
}

// With energy as objective, micro-batches move on from the split with the shortest step.
TEST(UnlikeGroups, AskWhetherItIsOverWhileMicroBatchesMove) {
  GroupedJob groups = two_groups(1.5);
  for (Cluster& group : groups.cluster.groups) group.device.power = Watts(500);
  const auto times_asked = [&groups](Objective objective) {
    int asked = 0;
    const GroupSearchOptions options{.objective = objective, .progress = [&](double) { ++asked; }};
    GroupWatch watch(options, 1);
    watch.start_way();
    EXPECT_TRUE(find_replicas(groups, watch, 1e300));
    return asked;
  };
  EXPECT_GT(times_asked(Objective::energy), times_asked(Objective::step_time));
}

TEST(UnlikeGroups, ReportHowFarTheyAre) {
  double last = 0;
  const auto progress = [&last](double fraction) {
    EXPECT_GE(fraction, 0);
    EXPECT_LE(fraction, 1);
    last = fraction;
  };
  plan_groups(two_groups(2), {.progress = progress});
  EXPECT_GT(last, 0.75) << "of four ways the last";
}

// 4 NICs of 25 GB/s for 4 devices, of which 85 % are attained; then one NIC for all four.
TEST(UnlikeGroups, HaveTheNicsOfTheirNodes) {
  Cluster cluster = two_groups(1).cluster.groups[0];
  EXPECT_NEAR(nics_of_a_device(cluster).value(), 0.85 * 25e9, 1);
  cluster.inter.nics_per_node = 1;
  EXPECT_NEAR(nics_of_a_device(cluster).value(), 0.85 * 25e9 / 4, 1);
}

}  // namespace
}  // namespace trainyard
