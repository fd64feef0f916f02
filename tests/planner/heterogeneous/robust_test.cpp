// Robust plans for groups of unlike nodes: the high end of the widest interval, and a straggler on
// the stage with most kernels; by hand, by one cluster, and by every split.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/cost/estimate.h"
#include "model/cost/interval.h"
#include "planner/heterogeneous/pipeline.h"
#include "planner/heterogeneous/replicas.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

// Each device is slow once in 1e6 hours, for 2e4 hours, at a quarter of its speed.
Valuation with_stragglers() {
  Valuation valuation{.robust = true};
  valuation.reliability.stragglers =
      Stragglers{.mtbf = 1e6 * kHour, .speed = 0.25, .detection = 2e4 * kHour};
  return valuation;
}

GroupedJob groups_with_interval(double slowness) {
  GroupedJob job = groups_of({1, slowness});
  job.training.stack.interval_low = 0.9;
  job.training.stack.interval_high = 1.2;
  return job;
}

// Two groups of the same nodes are one cluster and have its robust value.
TEST(UnlikeRobust, OfLikeNodesIsThatOfOneCluster) {
  GroupedJob groups = groups_with_interval(1);
  Cluster cluster = groups.cluster.groups[0];
  cluster.nodes = 2;
  const PreparedJob job = prepare({groups.model, cluster, groups.training});
  const PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4, .schedule = "1f1b"};
  const Plan plan = make_plan(request, groups.model, cluster, groups.training).value();
  const Estimate whole = estimate(job, plan);
  for (const Valuation& valuation : {Valuation{.robust = true}, with_stragglers()}) {
    for (const Objective objective : {Objective::step_time, Objective::goodput}) {
      const GroupedPlan found =
          price_pipeline(groups, request, {0, 1}, {.objective = objective, .valuation = valuation});
      const double expected = objective_value(job, valuation, objective, plan, whole);
      EXPECT_NEAR(found.value / expected, 1, 1e-9);
      EXPECT_GT(found.value, found.step_time.value() * 1.1);
      EXPECT_NEAR(found.step_time_high / whole.step_time_high, 1, 1e-9);
      EXPECT_NEAR(found.step_time_low / whole.step_time_low, 1, 1e-9);
    }
    const GroupedPlan full = price_pipeline(
        groups, request, {0, 1}, {.objective = Objective::memory, .valuation = valuation});
    EXPECT_NEAR(full.value, whole.peak_memory / cluster.device.memory, 1e-12);
  }
}

// The stack has runs on Hopper, but none on a device of no named generation
// (model/cost/interval.h).
TEST(UnlikeRobust, HasTheWidestIntervalOfTheGroupsAtWork) {
  GroupedJob groups = groups_with_interval(1.5);
  StackEvidence& evidence = groups.training.stack.evidence;
  evidence = {};
  evidence.runs = 5;
  evidence.devices = 1000;
  evidence.hopper = evidence.tensor_parallel = evidence.pipeline_parallel = true;
  evidence.context_parallel = true;
  groups.cluster.groups[0].device.generation = DeviceGeneration::hopper;
  groups.cluster.groups[1].device.generation.reset();
  const GroupedPlans found = plan_groups(groups);
  ASSERT_TRUE(found.pipeline && found.replicas && found.alone[0]);
  EXPECT_NEAR(found.alone[0]->step_time_high / found.alone[0]->step_time, 1.2, 1e-12);
  for (const auto& plan : {found.pipeline, found.replicas, found.alone[1]}) {
    EXPECT_NEAR(plan->step_time_high / plan->step_time, std::pow(1.2, kUnseenGeneration), 1e-12);
    EXPECT_NEAR(plan->step_time_low / plan->step_time, std::pow(0.9, kUnseenGeneration), 1e-12);
  }
}

// By hand: 8 devices · 2·10^4 h / 10^6 h = 16 % of the time with one slow device, whose kernels
// take three times their time more.
double by_hand(const GroupedPlan& plan) {
  Seconds kernels;
  for (const GroupShare& share : plan.shares) kernels = std::max(kernels, share.kernels);
  const int devices = plan.use == GroupUse::alone ? 4 : 8;
  return 1.2 * plan.step_time.value() + kernels.value() * devices * 0.02 * 3;
}

TEST(UnlikeRobust, IsWhatEveryWayIsFoundFor) {
  const GroupedJob groups = groups_with_interval(1.5);
  GroupSearchOptions options{.valuation = with_stragglers()};
  options.space.tensor_parallel = {4};
  options.space.micro_batch = {1};
  options.space.recompute = {RecomputeChoice{}};
  options.space.zero_stage = {0};
  options.space.sequence_parallel = {false};
  const GroupedPlans found = plan_groups(groups, options);
  ASSERT_TRUE(found.pipeline && found.replicas);
  for (const GroupedPlan& plan : in_order(found)) {
    EXPECT_NEAR(plan.value / by_hand(plan), 1, 1e-9);
    EXPECT_GE(plan.value, found.value_bound);
  }
  const PlanRequest alike{
      .tensor_parallel = 4, .sequence_parallel = false, .schedule = "1f1b", .zero_stage = 0};
  PlanRequest request = alike;
  request.pipeline_parallel = 2;
  double least = std::numeric_limits<double>::infinity();
  for (int layers = 0; layers <= 12; ++layers) {
    request.layers_per_stage = {layers, 12 - layers};
    for (const auto& order : {std::vector<std::size_t>{0, 1}, {1, 0}}) {
      least = std::min(least, by_hand(price_pipeline(groups, request, order)));
    }
  }
  EXPECT_NEAR(found.pipeline->value / least, 1, 1e-9);
  request = alike;
  least = std::numeric_limits<double>::infinity();
  for (int first = 1; first < 96; ++first) {
    const auto plan = price_replicas(groups, {{request, first}, {request, 96 - first}});
    least = std::min(least, by_hand(*plan));
  }
  EXPECT_NEAR(found.replicas->value / least, 1, 1e-9);
}

}  // namespace
}  // namespace trainyard
