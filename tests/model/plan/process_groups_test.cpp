// Process groups against a second computation: every rank's coordinates are the mixed-radix digits
// of its number in the rank order, and a group is the set of ranks that agree in all other
// coordinates.
#include "model/plan/process_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace trainyard {
namespace {

Plan plan_of(int t, int c, int p, int d) {
  Plan plan;
  plan.tensor_parallel = t;
  plan.context_parallel = c;
  plan.pipeline_parallel = p;
  plan.data_parallel = d;
  plan.expert_data_parallel = t * c * d;
  plan.sharding_group = c * d;
  return plan;
}

// The ranks of the group that starts at `first`.
std::set<int> members(GroupShape shape, int first = 0) {
  const int run = shape.run == 0 ? shape.size : shape.run;
  std::set<int> ranks;
  for (int i = 0; i < shape.size; ++i) {
    ranks.insert(first + (i % run) * shape.stride + (i / run) * shape.jump);
  }
  return ranks;
}

TEST(ProcessGroups, OfTwoByTwoByTwo) {
  // golden.md: rank 0 is in TP {0, 1}, DP {0, 2}, PP {0, 4}.
  const ProcessGroups groups = process_groups(plan_of(2, 1, 2, 2));
  EXPECT_EQ(members(groups.tensor), (std::set{0, 1}));
  EXPECT_EQ(members(groups.data), (std::set{0, 2}));
  EXPECT_EQ(members(groups.pipeline), (std::set{0, 4}));
}

TEST(ProcessGroups, DenseGradientsAreReducedOverContextAndDataRanks) {
  const ProcessGroups groups = process_groups(plan_of(2, 2, 2, 4));
  EXPECT_EQ(groups.dense_gradient, (GroupShape{2, 8}));
}

TEST(ProcessGroups, PipelineInTheMiddleSplitsTheGradientGroupIntoRuns) {
  // Llama 3's order: TP 2, CP 2, PP 2, DP 2. Context neighbours are 2 apart, data neighbours 8.
  Plan plan = plan_of(2, 2, 2, 2);
  plan.rank_order = "tp-cp-pp-dp-ep";
  EXPECT_EQ(members(process_groups(plan).dense_gradient), (std::set{0, 2, 8, 10}));
}

TEST(ProcessGroups, AShardingGroupIsTheFirstPartOfTheGradientGroup) {
  Plan plan = plan_of(2, 1, 1, 16);
  plan.sharding_group = 4;
  const ProcessGroups groups = process_groups(plan);
  EXPECT_EQ(members(groups.dense_shard), (std::set{0, 2, 4, 6}));
  EXPECT_EQ(members(groups.dense_replica), (std::set{0, 8, 16, 24}));
}

TEST(ProcessGroups, ExpertsFoldOverTensorAndContextRanks) {
  // t = 4, D = 4 on 16 ranks; e_t = 1, e = 8, D_e = 2: experts reach over the tensor groups.
  Plan plan = plan_of(4, 1, 1, 4);
  plan.expert_parallel = 8;
  plan.expert_data_parallel = 2;
  const ProcessGroups groups = process_groups(plan);
  EXPECT_EQ(members(groups.expert), (std::set{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(members(groups.expert_data), (std::set{0, 8}));
  EXPECT_EQ(groups.expert_tensor.size, 1);
}

// ---- law: the groups of each dimension partition the ranks --------------------------------------

using Coordinates = std::map<std::string, int>;

// The mixed-radix digits of `rank`; the first name of the order changes fastest.
Coordinates coordinates(int rank, const std::string& order, const Coordinates& degrees) {
  Coordinates at;
  for (std::size_t place = 0; place < order.size(); place += 3) {
    const std::string name = order.substr(place, 2);
    at[name] = rank % degrees.at(name);
    rank /= degrees.at(name);
  }
  return at;
}

// The sets of ranks whose coordinates agree in all dimensions except those of `free`.
std::set<std::set<int>> enumerated(const std::vector<Coordinates>& ranks,
                                   const std::vector<std::string>& free) {
  std::map<Coordinates, std::set<int>> groups;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Coordinates key = ranks[rank];
    for (const std::string& name : free) key.erase(name);
    groups[key].insert(static_cast<int>(rank));
  }
  std::set<std::set<int>> sets;
  for (const auto& [key, group] : groups) sets.insert(group);
  return sets;
}

// All groups of `shape`: each starts at the lowest rank that no earlier group has.
std::set<std::set<int>> tiled(GroupShape shape, int ranks) {
  std::set<int> left;
  for (int rank = 0; rank < ranks; ++rank) left.insert(rank);
  std::set<std::set<int>> groups;
  while (!left.empty()) {
    const std::set<int> group = members(shape, *left.begin());
    for (const int rank : group) {
      if (left.erase(rank) == 0) return {};  // no partition: leaves the cluster or overlaps
    }
    groups.insert(group);
  }
  return groups;
}

struct RandomPlan {
  Plan plan;
  std::vector<Coordinates> dense, expert;  // of every rank
};

// A plan of these degrees and the coordinates of its ranks, in a random order of the dimensions.
RandomPlan placed_at_random(const Plan& degrees_of, std::mt19937& random) {
  RandomPlan result{.plan = degrees_of, .dense = {}, .expert = {}};
  Plan& plan = result.plan;
  std::vector<std::string> names = {"tp", "cp", "ep", "dp", "pp"};
  std::shuffle(names.begin(), names.end(), random);
  plan.rank_order.clear();
  std::string in_stage;
  for (const std::string& name : names) {
    plan.rank_order += (plan.rank_order.empty() ? "" : "-") + name;
    if (name != "pp") in_stage += (in_stage.empty() ? "" : "-") + name;
  }
  const Coordinates degrees = {{"tp", plan.tensor_parallel},
                               {"cp", plan.context_parallel},
                               {"ep", 1},
                               {"dp", plan.data_parallel},
                               {"pp", plan.pipeline_parallel}};
  const Coordinates experts = {{"tp", plan.expert_tensor_parallel},
                               {"cp", 1},
                               {"ep", plan.expert_parallel},
                               {"dp", plan.expert_data_parallel}};
  std::map<int, int> seen;  // ranks of each stage so far: a rank's place in its stage
  for (int rank = 0; rank < plan.devices(); ++rank) {
    result.dense.push_back(coordinates(rank, plan.rank_order, degrees));
    const int stage_index = result.dense.back().at("pp");
    result.expert.push_back(coordinates(seen[stage_index]++, in_stage, experts));
    result.expert.back()["pp"] = stage_index;
  }
  return result;
}

// Degrees are powers of two up to 8; the experts' degrees factor t·c·D in another way.
RandomPlan random_plan(std::mt19937& random) {
  const auto power = [&](int most) { return 1 << std::uniform_int_distribution(0, most)(random); };
  Plan plan = plan_of(power(3), power(2), power(2), power(3));
  const int stage = plan.tensor_parallel * plan.context_parallel * plan.data_parallel;
  plan.expert_tensor_parallel = std::min(power(2), stage);
  plan.expert_parallel = std::min(power(4), stage / plan.expert_tensor_parallel);
  plan.expert_data_parallel = stage / plan.expert_tensor_parallel / plan.expert_parallel;
  return placed_at_random(plan, random);
}

TEST(ProcessGroups, OfEveryDimensionAreTheEnumeratedOnes) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const auto [plan, dense, expert] = random_plan(random);
    const ProcessGroups groups = process_groups(plan);
    const int ranks = plan.devices();
    SCOPED_TRACE(plan.rank_order);
    EXPECT_EQ(tiled(groups.tensor, ranks), enumerated(dense, {"tp"}));
    EXPECT_EQ(tiled(groups.context, ranks), enumerated(dense, {"cp"}));
    EXPECT_EQ(tiled(groups.data, ranks), enumerated(dense, {"dp"}));
    EXPECT_EQ(tiled(groups.pipeline, ranks), enumerated(dense, {"pp"}));
    EXPECT_EQ(tiled(groups.dense_gradient, ranks), enumerated(dense, {"cp", "dp"}));
    EXPECT_EQ(tiled(groups.expert_tensor, ranks), enumerated(expert, {"tp"}));
    EXPECT_EQ(tiled(groups.expert, ranks), enumerated(expert, {"ep"}));
    EXPECT_EQ(tiled(groups.expert_data, ranks), enumerated(expert, {"dp"}));
  }
}

// Any degrees. Where the rows of a stage are neither whole parts nor multiples of the experts'
// groups, the groups are not alike, and no shape describes them.
TEST(ProcessGroups, OfExpertsAreTheEnumeratedOnesWhereTheyLieAlike) {
  std::mt19937 random(13);
  std::map<bool, int> seen;  // by whether they lie alike
  for (int i = 0; i < 2000; ++i) {
    const auto degree = [&](int most) { return std::uniform_int_distribution(1, most)(random); };
    const auto divisor = [&](int number) {
      int found = degree(6);
      while (number % found != 0) found = degree(6);
      return found;
    };
    Plan degrees = plan_of(degree(3), degree(2), degree(3), degree(6));
    const int stage = degrees.tensor_parallel * degrees.context_parallel * degrees.data_parallel;
    degrees.expert_tensor_parallel = divisor(stage);
    degrees.expert_parallel = divisor(stage / degrees.expert_tensor_parallel);
    degrees.expert_data_parallel = stage / degrees.expert_tensor_parallel / degrees.expert_parallel;
    const auto [plan, dense, expert] = placed_at_random(degrees, random);
    const bool alike = expert_groups_are_alike(plan);
    ++seen[alike];
    const ProcessGroups groups = process_groups(plan);
    const int ranks = plan.devices();
    const bool as_enumerated = tiled(groups.expert_tensor, ranks) == enumerated(expert, {"tp"}) &&
                               tiled(groups.expert, ranks) == enumerated(expert, {"ep"}) &&
                               tiled(groups.expert_data, ranks) == enumerated(expert, {"dp"});
    EXPECT_EQ(alike, as_enumerated) << plan.rank_order << " of " << ranks;
  }
  EXPECT_GT(seen[true], 1000);
  EXPECT_GT(seen[false], 50);
}

TEST(ProcessGroups, ShardsAndReplicasMakeUpTheGradientGroup) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    Plan plan = random_plan(random).plan;
    const int ranks = plan.context_parallel * plan.data_parallel;
    plan.sharding_group = std::min(ranks, 1 << std::uniform_int_distribution(0, 5)(random));
    const ProcessGroups groups = process_groups(plan);
    std::set<int> product;
    for (const int replica : members(groups.dense_replica)) {
      for (const int rank : members(groups.dense_shard, replica)) product.insert(rank);
    }
    EXPECT_EQ(groups.dense_shard.size, plan.sharding_group);
    EXPECT_EQ(product, members(groups.dense_gradient)) << plan.rank_order;
  }
}

}  // namespace
}  // namespace trainyard
