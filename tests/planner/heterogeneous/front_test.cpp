// The front of two objectives over groups of unlike nodes, compared with a list of all teams,
// orders, splits of the layers and of the batch, and recomputations.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "model/cost/estimate.h"
#include "planner/heterogeneous/pipeline.h"
#include "planner/heterogeneous/replicas.h"
#include "planner/heterogeneous/team.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

// The last group has little memory, the second is cheap and frugal.
GroupedJob priced_groups() {
  GroupedJob job = groups_of({1, 1.5, 2});
  job.training.global_batch = 12;
  const double dollars_an_hour[] = {4, 1, 2};
  const double watts[] = {700, 250, 600};
  const double memory_share[] = {1, 0.5, 0.25};
  for (std::size_t g = 0; g < 3; ++g) {
    Device& device = job.cluster.groups[g].device;
    device.price = DollarsPerSecond(dollars_an_hour[g] / 3600);
    device.power = Watts(watts[g]);
    device.memory = device.memory * memory_share[g];
  }
  return job;
}

constexpr Recompute kNone{RecomputeMode::none, 0}, kFull{RecomputeMode::full, 0};

GroupSearchOptions space_of(Objective first, Objective second) {
  GroupSearchOptions options{.objective = first, .second = second};
  options.space.tensor_parallel = {4};
  options.space.micro_batch = {1};
  options.space.recompute = {{kNone, {}}, {kFull, {}}};
  // A group alone may use only what the others may.
  options.space.schedule = {"1f1b"};
  options.space.virtual_stages = {1};
  options.space.sequence_parallel = {true};
  options.space.zero_stage = {0};
  options.space.offload = {"none"};
  options.space.context_parallel = {1};
  options.space.sharding_group = {kShardOverAll};
  return options;
}

// Calls `visit` with all ways to divide `total` into `parts` parts of at least `least`.
template <typename Visit>
void for_splits(int parts, int total, int least, const Visit& visit, std::vector<int> split = {}) {
  if (static_cast<int>(split.size()) + 1 == parts) {
    split.push_back(total);
    if (total >= least) visit(split);
    return;
  }
  for (int part = least; part <= total; ++part) {
    std::vector<int> longer = split;
    longer.push_back(part);
    for_splits(parts, total - part, least, visit, std::move(longer));
  }
}

PlanRequest request_with(Recompute recompute) {
  return {.tensor_parallel = 4, .schedule = "1f1b", .zero_stage = 0, .recompute = recompute};
}

template <typename Visit>
void for_pipelines(const GroupedJob& team, const GroupSearchOptions& options, const Visit& visit) {
  const int stages = static_cast<int>(team.cluster.groups.size());
  for (const Recompute& recompute : {kNone, kFull}) {
    PlanRequest request = request_with(recompute);
    request.pipeline_parallel = stages;
    for_splits(stages, team.model.layers, 0, [&](const std::vector<int>& layers) {
      request.layers_per_stage = layers;
      std::vector<std::size_t> order(layers.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      do {
        visit(price_pipeline(team, request, order, options));
      } while (std::next_permutation(order.begin(), order.end()));
    });
  }
}

// In every group, the replicas recompute all layers or none.
template <typename Visit>
void for_replicas(const GroupedJob& team, const GroupSearchOptions& options, const Visit& visit) {
  const std::size_t groups = team.cluster.groups.size();
  const int sequences = static_cast<int>(team.training.global_batch);
  for (std::size_t repeated = 0; repeated < std::size_t{1} << groups; ++repeated) {
    for_splits(static_cast<int>(groups), sequences, 1, [&](const std::vector<int>& split) {
      std::vector<NamedReplicas> named;
      for (std::size_t g = 0; g < groups; ++g) {
        named.push_back({request_with((repeated >> g & 1) != 0 ? kFull : kNone), split[g]});
      }
      visit(price_replicas(team, named, options).value());
    });
  }
}

GroupedPlan alone_on(const GroupedJob& job, std::size_t group, const GroupSearchOptions& options,
                     Recompute recompute) {
  // Replicas of a single group are the whole job on that group, without an exchange; priced by
  // hand.
  const Cluster& cluster = job.cluster.groups[group];
  const PreparedJob own = prepare({job.model, cluster, job.training});
  const Plan plan = make_plan(request_with(recompute), job.model, cluster, job.training).value();
  const Estimate priced = estimate(own, plan);
  GroupedPlan alone{.step_time = priced.step_time, .feasible = priced.feasible};
  const auto value = [&](Objective objective) {
    const double found = objective_value(own, options.valuation, objective, plan, priced);
    return objective == Objective::memory ? found / cluster.device.memory.value() : found;
  };
  alone.value = value(options.objective);
  alone.second_value = value(*options.second);
  return alone;
}

using Points = std::vector<std::pair<double, double>>;

// All pairs of values that no other pair equals or beats in both, ordered by the first.
Points front_of(Points points) {
  std::ranges::sort(points);
  Points front;
  for (const auto& point : points) {
    if (front.empty() || point.second < front.back().second * (1 - 1e-12)) front.push_back(point);
  }
  return front;
}

Points all_points(const GroupedJob& job, const GroupSearchOptions& options) {
  Points points;
  const auto add = [&points](const GroupedPlan& plan) {
    if (plan.feasible) points.emplace_back(plan.value, plan.second_value);
  };
  for (const Members& team : teams_of(3)) {
    for_pipelines(job_of(job, team), options, add);
    for_replicas(job_of(job, team), options, add);
  }
  for (std::size_t g = 0; g < 3; ++g) {
    for (const Recompute& recompute : {kNone, kFull}) add(alone_on(job, g, options, recompute));
  }
  return points;
}

constexpr std::array kPairs = {std::pair{Objective::step_time, Objective::memory},
                               std::pair{Objective::memory, Objective::step_time},
                               std::pair{Objective::step_time, Objective::cost},
                               std::pair{Objective::cost, Objective::memory},
                               std::pair{Objective::step_time, Objective::goodput}};
constexpr std::array kPairsWithEnergy = {std::pair{Objective::cost, Objective::energy},
                                         std::pair{Objective::energy, Objective::step_time},
                                         std::pair{Objective::memory, Objective::energy}};

struct Fronts {
  Points expected, found;
};

Fronts fronts_by(Objective first, Objective second) {
  const GroupedJob job = priced_groups();
  GroupSearchOptions options = space_of(first, second);
  options.valuation.reliability.device_mtbf = 100 * kHour;
  Fronts fronts{.expected = front_of(all_points(job, options)), .found = {}};
  for (const GroupedPlan& plan : in_order(plan_groups(job, options))) {
    fronts.found.emplace_back(plan.value, plan.second_value);
  }
  return fronts;
}

std::string words_of(Objective first, Objective second) {
  return std::string(objective_name(first)) + "," + std::string(objective_name(second));
}

TEST(UnlikeFront, IsThatOfAllTeamsOrdersAndSplits) {
  for (const auto& [first, second] : kPairs) {
    SCOPED_TRACE(words_of(first, second));
    const auto [expected, points] = fronts_by(first, second);
    ASSERT_EQ(points.size(), expected.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_NEAR(points[i].first / expected[i].first, 1, 1e-9) << i;
      EXPECT_NEAR(points[i].second / expected[i].second, 1, 1e-9) << i;
    }
  }
}

// Energy does not depend on the step alone, and its search starts from the layers that are best for
// the step. So what is found is on the front of all plans, and what is missed is matched by another
// plan within a hundredth.
TEST(UnlikeFront, IsThatOfAllToAHundredthWithEnergy) {
  constexpr double kNear = 1.01;
  for (const auto& [first, second] : kPairsWithEnergy) {
    SCOPED_TRACE(words_of(first, second));
    const auto [expected, points] = fronts_by(first, second);
    for (const auto& point : points) {
      EXPECT_TRUE(std::ranges::any_of(expected, [&point](const auto& other) {
        return std::abs(point.first / other.first - 1) < 1e-9 &&
               std::abs(point.second / other.second - 1) < 1e-9;
      }));
    }
    for (const auto& missed : expected) {
      EXPECT_TRUE(std::ranges::any_of(points, [&missed](const auto& other) {
        return other.first <= missed.first * kNear && other.second <= missed.second * kNear;
      })) << missed.first;
    }
  }
}

// The ends of a front are the best plans of either objective.
TEST(UnlikeFront, EndsAtTheBestOfEachObjective) {
  const GroupedJob job = priced_groups();
  for (const auto& [first, second] : kPairs) {
    const GroupSearchOptions options = space_of(first, second);
    const std::vector<GroupedPlan> front = in_order(plan_groups(job, options));
    GroupSearchOptions one = options;
    one.second.reset();
    const double best = in_order(plan_groups(job, one)).front().value;
    one.objective = second;
    const double other = in_order(plan_groups(job, one)).front().value;
    ASSERT_FALSE(front.empty());
    constexpr double kNear = 1 + 2e-3;  // of the halving of memory
    EXPECT_LE(front.front().value, best * kNear);
    EXPECT_LE(front.back().second_value, other * kNear);
  }
}

TEST(UnlikeFront, StopsWhenItIsAskedTo) {
  GroupSearchOptions options = space_of(Objective::step_time, Objective::memory);
  options.time_limit = Seconds(1e-6);
  EXPECT_FALSE(plan_groups(priced_groups(), options).complete);
}

}  // namespace
}  // namespace trainyard
