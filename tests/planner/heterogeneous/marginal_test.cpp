// What a little more of each resource is worth on groups of unlike nodes, compared with searches
// from scratch; and the plans that people take without a planner, compared with one cluster.
#include "planner/heterogeneous/marginal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>

#include "planner/findings/baseline.h"
#include "planner/heterogeneous/baseline.h"
#include "tests/planner/jobs.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

constexpr double kMore = 1.01;

using Raise = void (*)(Cluster& group);
const std::map<std::string, Raise, std::less<>> kRaises = {
    {"FLOP/s",
     [](Cluster& group) {
       for (FlopsPerSecond& peak : group.device.peak) peak *= kMore;
       group.device.rates.sustained_clock *= kMore;
     }},
    {"memory capacity", [](Cluster& group) { group.device.memory *= kMore; }},
    {"memory bandwidth", [](Cluster& group) { group.device.memory_bandwidth *= kMore; }},
    {"network bandwidth", [](Cluster& group) {
       group.inter.bandwidth *= kMore;
       group.inter.link_bandwidth *= kMore;
       for (FabricLink& link : group.inter.links) link.bandwidth *= kMore;
     }}};

double best_value(const GroupedJob& job, const GroupSearchOptions& options) {
  return in_order(plan_groups(job, options)).at(0).value;
}

// For every resource, on every group and on all groups, whatever the search for it left out.
void expect_from_scratch(const GroupedJob& job, const GroupSearchOptions& options) {
  const GroupedPlan winner = in_order(plan_groups(job, options)).at(0);
  const auto gain = [&](const GroupedJob& richer) {
    return std::max(0.0, 1 - best_value(richer, options) / winner.value);
  };
  std::size_t found = 0;
  for (const GroupedMarginalValue& value : marginal_values(job, options, winner)) {
    const auto raise = kRaises.find(value.resource);
    if (raise == kRaises.end()) continue;
    SCOPED_TRACE(value.resource);
    ++found;
    GroupedJob all = job;
    ASSERT_EQ(value.gained_by_group.size(), job.cluster.groups.size());
    for (std::size_t g = 0; g < job.cluster.groups.size(); ++g) {
      GroupedJob one = job;
      raise->second(one.cluster.groups[g]);
      raise->second(all.cluster.groups[g]);
      EXPECT_NEAR(value.gained_by_group[g], gain(one), 1e-9) << "group " << g;
    }
    EXPECT_NEAR(value.gained, gain(all), 1e-9);
  }
  EXPECT_EQ(found, kRaises.size());
}

GroupedJob tight(GroupedJob job, std::size_t group, double share) {
  job.cluster.groups[group].device.memory *= share;
  return job;
}

TEST(UnlikeMarginal, IsWhatASearchFromScratchGains) {
  const GroupedPlans roomy = plan_groups(groups_of({1, 1.5}));
  const double full =
      roomy.pipeline->shares[0].peak_memory / groups_of({1, 1.5}).cluster.groups[0].device.memory;
  // The last of them is a little too small for the fastest plan.
  for (const GroupedJob& job :
       {groups_of({1, 1.5}), groups_of({2, 1, 1.5}), tight(groups_of({1, 1.5}), 0, full * 0.995)}) {
    for (const Objective objective : {Objective::step_time, Objective::memory}) {
      GroupSearchOptions options{.objective = objective};
      options.space.tensor_parallel = {1, 4};
      options.space.micro_batch = {1, 4};
      options.space.zero_stage = {1};
      if (is_next_tried()) expect_from_scratch(job, options);
    }
  }
}

// One percent more memory lets the fastest plan fit again.
TEST(UnlikeMarginal, OfMemoryIsAnotherPlanWhereItFitsThen) {
  const GroupedJob roomy = groups_of({1, 1.5});
  const GroupedPlan fastest = in_order(plan_groups(roomy)).at(0);
  const double full = fastest.shares[0].peak_memory / roomy.cluster.groups[0].device.memory;
  const GroupedJob job = tight(roomy, 0, full * 0.995);
  const GroupedPlan winner = in_order(plan_groups(job)).at(0);
  ASSERT_GT(winner.step_time, fastest.step_time);
  const auto values = marginal_values(job, {}, winner);
  const auto memory = std::ranges::find(values, std::string_view("memory capacity"),
                                        &GroupedMarginalValue::resource);
  ASSERT_NE(memory, values.end());
  EXPECT_FALSE(memory->same_plan);
  EXPECT_NEAR(memory->gained_by_group[0], 1 - fastest.step_time / winner.step_time, 1e-9);
  EXPECT_EQ(memory->gained_by_group[1], 0);
}

TEST(UnlikeMarginal, KnowsTheBoundaryWhereItIsNamed) {
  GroupedJob job = groups_of({1, 1.5});
  const auto has_boundary = [&job] {
    const auto values = marginal_values(job, {}, in_order(plan_groups(job)).at(0));
    return std::ranges::any_of(values, [](const GroupedMarginalValue& value) {
      return value.resource == "bandwidth between groups" && value.gained_by_group.empty();
    });
  };
  EXPECT_FALSE(has_boundary());
  job.cluster.boundary.bandwidth = BytesPerSecond(1e9);
  EXPECT_TRUE(has_boundary());
}

TEST(UnlikeMarginal, IsNothingOnceItIsInterrupted) {
  const GroupedJob job = groups_of({1, 1.5});
  const GroupedPlan winner = in_order(plan_groups(job)).at(0);
  const std::atomic<bool> interrupted = true;
  EXPECT_TRUE(marginal_values(job, {.interrupted = &interrupted}, winner).empty());
}

PreparedJob one_cluster(const GroupedJob& groups, std::size_t group) {
  Cluster cluster = groups.cluster.groups[group];
  cluster.nodes = 0;
  for (const Cluster& own : groups.cluster.groups) cluster.nodes += own.nodes;
  return prepare({groups.model, cluster, groups.training});
}

// The step of a cluster of all groups: each part of the step takes as long as in the group where it
// is slowest.
Seconds step_of_all(const GroupedJob& groups, const Plan& plan) {
  Seconds step;
  for (const BreakdownPart& part : breakdown_parts()) {
    Seconds longest;
    for (std::size_t g = 0; g < groups.cluster.groups.size(); ++g) {
      longest = std::max(longest, estimate(one_cluster(groups, g), plan).breakdown.*part.time);
    }
    step += longest;
  }
  return step;
}

// The groups have the same network, so the plans that are tried and fit are those of the slowest
// nodes alone.
TEST(UnlikeBaseline, IsThePlanOfOneClusterAtThePaceOfTheSlowest) {
  for (const std::vector<double>& slowness : {std::vector<double>{1, 1}, {1, 2}, {3, 1, 1.5}}) {
    GroupedJob groups = groups_of(slowness);
    groups.cluster.boundary.bandwidth = BytesPerSecond(1e15);  // no slower than inside
    const auto slowest = static_cast<std::size_t>(
        std::max_element(slowness.begin(), slowness.end()) - slowness.begin());
    const PreparedJob job = one_cluster(groups, slowest);
    const Evaluator evaluate = analytic_evaluator(job);
    const auto found = baselines_of(groups, {});
    ASSERT_EQ(found.size(), 3u);
    const Expected<Candidate> expected[] = {rule_of_thumb(job, {}, evaluate),
                                            data_parallel_only(job, 0, {}, evaluate),
                                            data_parallel_only(job, 3, {}, evaluate)};
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(found[i].name);
      ASSERT_EQ(found[i].plan.has_value(), expected[i].has_value());
      if (!expected[i]) continue;
      EXPECT_EQ(found[i].plan->order.size(), slowness.size());
      EXPECT_NEAR(found[i].plan->step_time / step_of_all(groups, expected[i]->plan), 1, 1e-9);
      EXPECT_GE(found[i].plan->step_time, expected[i]->estimate.step_time * (1 - 1e-12));
      EXPECT_EQ(found[i].plan->feasible, expected[i]->estimate.feasible);
    }
  }
}

TEST(UnlikeBaseline, MustFitEveryGroup) {
  const GroupedJob job = tight(groups_of({1, 1}), 1, 1e-6);
  for (const GroupedBaseline& found : baselines_of(job, {})) {
    EXPECT_FALSE(found.plan && found.plan->feasible) << found.name;
  }
}

// A group that cannot compute in the precision is not used; the other is priced as if it were
// alone.
TEST(UnlikeBaseline, LeavesOutWhatDoesNotComputeInThePrecision) {
  GroupedJob job = groups_of({1, 2});
  for (const Dtype dtype : {job.training.precision.layer_gemm, job.training.precision.head_gemm}) {
    job.cluster.groups[0].device.rates.gemm[static_cast<std::size_t>(dtype)] = {};
  }
  const PreparedJob alone = prepare({job.model, job.cluster.groups[1], job.training});
  const auto rule = rule_of_thumb(alone, {}, analytic_evaluator(alone));
  const auto found = baselines_of(job, {});
  ASSERT_EQ(found.size(), 3u);
  ASSERT_TRUE(found[0].plan && rule);
  EXPECT_EQ(found[0].plan->use, GroupUse::alone);
  EXPECT_EQ(found[0].plan->order, std::vector<std::size_t>{1});
  EXPECT_EQ(found[0].plan->step_time, rule->estimate.step_time);
}

// Eight devices, but only four sequences.
TEST(UnlikeBaseline, SaysWhyNoneIsLegal) {
  GroupedJob job = groups_of({1, 2});
  job.training.global_batch = 4;
  const auto found = baselines_of(job, {});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[1].plan) << "plain DDP";
  EXPECT_FALSE(found[1].plan.error().message.empty());
}

}  // namespace
}  // namespace trainyard
