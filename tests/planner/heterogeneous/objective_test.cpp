// Objectives of plans for groups of unlike nodes: bills added up by hand, one cluster of like
// nodes, and every split of the layers and of the batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "model/cost/estimate.h"
#include "model/cost/reliability.h"
#include "planner/heterogeneous/pipeline.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Price and power do not follow speed, and the last group has little memory.
GroupedJob priced_groups(const std::vector<double>& slowness) {
  const double dollars_an_hour[] = {4, 1, 2};
  const double watts[] = {700, 250, 600};
  const double memory_share[] = {1, 0.5, 0.25};
  GroupedJob job = groups_of(slowness);
  for (std::size_t g = 0; g < slowness.size(); ++g) {
    Device& device = job.cluster.groups[g].device;
    device.price = DollarsPerSecond(dollars_an_hour[g] / 3600);
    device.power = Watts(watts[g]);
    device.memory = device.memory * memory_share[g];
    job.cluster.groups[g].pue = 1.2;
  }
  return job;
}

// By hand: device time times price; power times time times the PUE, where a waiting device draws
// 0.35 (model/cost/money.cpp); and the fullest device relative to its own memory.
double by_hand(const GroupedJob& job, Objective objective, const GroupedPlan& plan) {
  const double step = plan.step_time.value();
  double cost = 0, energy = 0, fullest = 0;
  for (std::size_t g = 0; g < plan.shares.size(); ++g) {
    const GroupShare& share = plan.shares[g];
    const Cluster& group = job.cluster.groups[g];
    if (share.stages == 0) continue;
    const double devices = group.nodes * group.devices_per_node;
    const double busy = share.busy.value();
    EXPECT_GT(busy, 0);
    EXPECT_LE(busy, step * (1 + 1e-9));
    cost += devices * step * group.device.price->value();
    energy += devices * group.device.power.value() * group.pue * (busy + 0.35 * (step - busy));
    fullest = std::max(fullest, share.peak_memory.value() / group.device.memory.value());
  }
  if (objective == Objective::cost) return cost;
  if (objective == Objective::energy) return energy;
  return objective == Objective::memory ? fullest : step;
}

constexpr Objective kByHand[] = {Objective::step_time, Objective::cost, Objective::energy,
                                 Objective::memory};

GroupSearchOptions options_for(Objective objective) {
  GroupSearchOptions options{.objective = objective};
  options.space.micro_batch = {1};
  return options;
}

TEST(UnlikeObjective, IsTheBillOfTheGroupsAtWork) {
  const GroupedJob job = priced_groups({1, 1.5, 2});
  for (const Objective objective : kByHand) {
    const GroupedPlans found = plan_groups(job, options_for(objective));
    const std::vector<GroupedPlan> plans = in_order(found);
    ASSERT_EQ(plans.size(), 7u);  // both pipelines, replicas, together, each alone
    double last = 0;
    for (const GroupedPlan& plan : plans) {
      EXPECT_NEAR(plan.value / by_hand(job, objective, plan), 1, 1e-12);
      EXPECT_NEAR(plan.cost_per_step->value() / by_hand(job, Objective::cost, plan), 1, 1e-12);
      EXPECT_NEAR(plan.energy_per_step->value() / by_hand(job, Objective::energy, plan), 1, 1e-12);
      EXPECT_NEAR(plan.fullness / by_hand(job, Objective::memory, plan), 1, 1e-12);
      EXPECT_GE(plan.value, last);
      EXPECT_GE(plan.value, found.value_bound);
      last = plan.value;
    }
  }
}

// For its own objective, no way is worse than the same way found for another objective.
TEST(UnlikeObjective, IsWhatEveryWayIsFoundFor) {
  const GroupedJob job = priced_groups({1, 1.5, 2});
  std::vector<GroupedPlans> of_objective;
  for (const Objective objective : kByHand) {
    of_objective.push_back(plan_groups(job, options_for(objective)));
  }
  for (std::size_t i = 0; i < of_objective.size(); ++i) {
    const GroupedPlans& found = of_objective[i];
    for (const GroupedPlans& others : of_objective) {
      const auto value = [&](const GroupedPlan& plan) { return by_hand(job, kByHand[i], plan); };
      constexpr double kNear = 1 + 2e-3;  // of the halving of memory
      EXPECT_LE(value(*found.pipeline), value(*others.pipeline) * kNear);
      EXPECT_LE(value(*found.replicas), value(*others.replicas) * (1 + 1e-9));
      for (std::size_t g = 0; g < 3; ++g) {
        EXPECT_LE(value(*found.alone[g]), value(*others.alone[g]) * (1 + 1e-9));
      }
    }
  }
}

// Two groups of the same nodes are one cluster, and a pipeline through them is worth what that
// cluster's estimate says.
TEST(UnlikeObjective, OfLikeNodesIsThatOfOneCluster) {
  GroupedJob groups = priced_groups({1, 1});
  groups.cluster.groups[1] = groups.cluster.groups[0];
  Cluster cluster = groups.cluster.groups[0];
  cluster.nodes = 2;
  const PreparedJob job = prepare({groups.model, cluster, groups.training});
  Valuation valuation;
  valuation.reliability.device_mtbf = 10 * kHour;
  const PlanRequest request{.tensor_parallel = 2, .pipeline_parallel = 4, .schedule = "1f1b"};
  const Plan plan = make_plan(request, groups.model, cluster, groups.training).value();
  const Estimate whole = estimate(job, plan);
  for (const Objective objective : {Objective::step_time, Objective::cost, Objective::energy,
                                    Objective::memory, Objective::goodput}) {
    const GroupedPlan found =
        price_pipeline(groups, request, {0, 1}, {.objective = objective, .valuation = valuation});
    double expected = objective_value(job, valuation, objective, plan, whole);
    if (objective == Objective::memory) expected /= cluster.device.memory.value();
    EXPECT_NEAR(found.value / expected, 1, 1e-9) << static_cast<int>(objective);
  }
}

// A job on two groups fails and restarts as one on the same number of nodes of the worse group.
TEST(UnlikeObjective, DividesTheStepByTheGoodputOfTheWorseGroup) {
  GroupedJob groups = priced_groups({1, 1.5});
  groups.cluster.groups[1].inter.bandwidth /= 100;
  GroupSearchOptions options{.objective = Objective::goodput};
  options.valuation.reliability.device_mtbf = 5 * kHour;
  const GroupedPlans found = plan_groups(groups, options);
  for (const auto& plan : {found.pipeline, found.replicas}) {
    ASSERT_TRUE(plan);
    Plan all = plan->plan;
    if (plan->use == GroupUse::replicas) {
      all.data_parallel = plan->shares[0].replicas + plan->shares[1].replicas;
    }
    double least = 1;
    for (Cluster cluster : groups.cluster.groups) {
      cluster.nodes = 2;
      const PreparedJob job = prepare({groups.model, cluster, groups.training});
      least =
          std::min(least, estimate_goodput(job, all, plan->step_time, options.valuation.reliability,
                                           options.valuation.checkpoint)
                              .goodput);
    }
    ASSERT_LT(least, 1);
    EXPECT_NEAR(*plan->goodput, least, 1e-12);
    EXPECT_NEAR(plan->value, plan->step_time.value() / least, 1e-12);
  }
}

// ---- Every split ---------------------------------------------------------------------------

struct Team {
  GroupedJob job;
  std::vector<std::size_t> members;  // of all groups
};

std::vector<Team> teams_of_three(const GroupedJob& job) {
  std::vector<Team> teams;
  for (const std::vector<std::size_t>& members :
       {std::vector<std::size_t>{0, 1, 2}, {0, 1}, {0, 2}, {1, 2}}) {
    Team team{job, members};
    team.job.cluster.groups.clear();
    for (const std::size_t g : members) team.job.cluster.groups.push_back(job.cluster.groups[g]);
    teams.push_back(std::move(team));
  }
  return teams;
}

// The least value over all orders and all splits of the layers, with one stage per group.
double least_of_splits(const Team& team, Objective objective, PlanRequest request,
                       std::vector<int> layers = {}) {
  const std::size_t stages = team.members.size();
  int left = team.job.model.layers;
  for (const int some : layers) left -= some;
  double least = kNever;
  if (layers.size() + 1 < stages) {
    layers.push_back(0);
    for (; layers.back() <= left; ++layers.back()) {
      least = std::min(least, least_of_splits(team, objective, request, layers));
    }
    return least;
  }
  layers.push_back(left);
  request.layers_per_stage = layers;
  request.pipeline_parallel = static_cast<int>(stages);
  std::vector<std::size_t> order(stages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    const GroupedPlan plan = price_pipeline(team.job, request, order);
    if (plan.feasible) least = std::min(least, by_hand(team.job, objective, plan));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(UnlikeObjective, OfAPipelineIsTheBestOfAllTeamsOrdersAndSplits) {
  const GroupedJob job = priced_groups({1, 1.5, 2});
  for (const Objective objective : kByHand) {
    GroupSearchOptions options{.objective = objective};
    options.space.tensor_parallel = {4};
    options.space.micro_batch = {1};
    options.space.recompute = {RecomputeChoice{}};
    const auto found = plan_groups(job, options).pipeline;
    ASSERT_TRUE(found);
    double least = kNever;
    for (const Team& team : teams_of_three(job)) {
      least = std::min(
          least, least_of_splits(team, objective, {.tensor_parallel = 4, .schedule = "1f1b"}));
    }
    EXPECT_NEAR(by_hand(job, objective, *found) / least, 1, 1e-9) << static_cast<int>(objective);
  }
}

// One group's share of a step by micro-batches per replica, priced on its own nodes.
struct Part {
  double time = 0, busy = 0;
};

Part part_of(const PreparedJob& job, Plan plan, int microbatches) {
  plan.microbatches = microbatches;
  const Estimate priced = estimate(job, plan);
  return {priced.step_time.value(), computing_time(plan, priced).value()};
}

// The least energy over all ways to divide the micro-batches among one replica of each group. The
// exchange between the groups takes `exchange`.
double least_energy(const GroupedJob& job, const std::vector<std::vector<Part>>& parts,
                    double exchange, std::vector<std::size_t> split, std::size_t left) {
  double least = kNever;
  if (split.size() + 1 < parts.size()) {
    split.push_back(1);
    for (; split.back() < left; ++split.back()) {
      least = std::min(least, least_energy(job, parts, exchange, split, left - split.back()));
    }
    return least;
  }
  if (left == 0) return least;
  split.push_back(left);
  double step = 0, energy = 0;
  for (std::size_t g = 0; g < parts.size(); ++g) step = std::max(step, parts[g][split[g]].time);
  step += exchange;
  for (std::size_t g = 0; g < parts.size(); ++g) {
    const Cluster& group = job.cluster.groups[g];
    const double busy = parts[g][split[g]].busy;
    energy += 4 * group.device.power.value() * group.pue * (busy + 0.35 * (step - busy));
  }
  return energy;
}

TEST(UnlikeObjective, OfReplicasIsTheLeastEnergyOfAllSplitsOfTheBatch) {
  for (const std::vector<double>& slowness :
       {std::vector<double>{1, 1.5}, {1, 3}, {2, 1}, {1, 1.5, 2}, {1.5, 1, 1}}) {
    const GroupedJob job = priced_groups(slowness);
    GroupSearchOptions options{.objective = Objective::energy};
    options.space.tensor_parallel = {4};
    options.space.micro_batch = {2};
    options.space.sequence_parallel = {false};
    options.space.data_parallel = {static_cast<int>(slowness.size())};
    options.space.recompute = {RecomputeChoice{}};
    const auto found = plan_groups(job, options).replicas;
    ASSERT_TRUE(found && found->order.size() == slowness.size());
    std::vector<std::vector<Part>> parts;
    for (const Cluster& cluster : job.cluster.groups) {
      const PreparedJob own = prepare({job.model, cluster, job.training});
      const PlanRequest request{
          .tensor_parallel = 4, .sequence_parallel = false, .schedule = "1f1b", .micro_batch = 2};
      const Plan plan = make_plan(request, job.model, cluster, job.training).value();
      std::vector<Part>& own_parts = parts.emplace_back(1);
      for (int m = 1; m <= 48; ++m) own_parts.push_back(part_of(own, plan, m));
    }
    const double least = least_energy(job, parts, found->boundary->value(), {}, 48);
    EXPECT_NEAR(found->value / least, 1, 1e-3) << slowness.size();
    EXPECT_GE(found->value / least, 1 - 1e-9);
  }
}

}  // namespace
}  // namespace trainyard
