#include "planner/search/enumeration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

using std::vector;

TEST(Divisors, AreAscendingAndComplete) {
  EXPECT_EQ(divisors(1), vector<int>({1}));
  EXPECT_EQ(divisors(36), vector<int>({1, 2, 3, 4, 6, 9, 12, 18, 36}));
  EXPECT_EQ(divisors(97), vector<int>({1, 97}));
}

TEST(Enumeration, FillsTheClusterWithEveryCombinationOfDegrees) {
  const PreparedJob job = prepare(small_dense_job());
  for (const Degrees& d : enumerate(job, {}).degrees) {
    EXPECT_EQ(d.tensor * d.context * d.pipeline * d.data, 8);
    EXPECT_EQ(d.expert * d.expert_tensor, 1);
    EXPECT_LE(d.pipeline, 6);  // p·v ≤ L + 2
  }
  // 8 = 2³ can be written as t·c·p·D in C(3 + 3, 3) = 20 ways; the one with p = 8 is left out.
  SearchSpace space;
  space.context_parallel_algorithm = {"ring"};
  space.sequence_parallel = {true};
  EXPECT_EQ(enumerate(job, space).degrees.size(), 19u);
  // C(3 + 2, 2) − 1 = 9 of the 19 have c = 1, so 10 have c > 1; in all of those 8/t heads are
  // enough for c ranks.
  space.context_parallel_algorithm = {"ring", "ulysses"};
  EXPECT_EQ(enumerate(job, space).degrees.size(), 19u + 10u);
}

TEST(Enumeration, SearchesSequenceParallelismWhereTheStackHasIt) {
  Job job = small_dense_job();
  const auto with_it = [&](const SearchSpace& space, const PlanRequest& base) {
    int count = 0;
    for (const Degrees& d : enumerate(prepare(job), space, base).degrees) {
      count += d.sequence_parallel ? 1 : 0;
      EXPECT_TRUE(d.tensor > 1 || !d.sequence_parallel);
    }
    return count;
  };
  job.training.stack.sequence_parallel = false;
  EXPECT_EQ(with_it({}, {}), 0);
  SearchSpace asked;
  asked.sequence_parallel = {true};
  EXPECT_GT(with_it(asked, {}), 0);
  job.training.stack.sequence_parallel = true;
  EXPECT_GT(with_it({}, {}), 0);
  EXPECT_EQ(with_it({}, {.sequence_parallel = false}), 0);
  EXPECT_GT(with_it(asked, {.sequence_parallel = false}), 0) << "the section is before the plan";
}

bool lists_sequence_parallelism(const Job& job, const SearchSpace& space, const PlanRequest& base) {
  const auto listed = searched_dimensions(space, enumerate(prepare(job), space, base));
  return std::ranges::find(listed, "sequence_parallel") != listed.end();
}

TEST(Enumeration, ListsSequenceParallelismWhereBothValuesAreSearched) {
  Job job = small_dense_job();
  SearchSpace named;
  named.sequence_parallel = {true, false};
  EXPECT_TRUE(lists_sequence_parallelism(job, {}, {}));
  EXPECT_FALSE(lists_sequence_parallelism(job, {}, {.sequence_parallel = true}));
  EXPECT_TRUE(lists_sequence_parallelism(job, named, {.sequence_parallel = true}));
  job.training.stack.sequence_parallel = false;
  EXPECT_FALSE(lists_sequence_parallelism(job, {}, {}));
  EXPECT_TRUE(lists_sequence_parallelism(job, named, {}));
  // Experts with tensor parallelism require it (handbook §4), so there is one legal value.
  EXPECT_TRUE(lists_sequence_parallelism(small_moe_job(), {}, {}));
  EXPECT_FALSE(lists_sequence_parallelism(small_moe_job(), {}, {.sequence_parallel = false}));
}

TEST(Enumeration, ShardsOverTheGroupsOfTheSpace) {
  SearchSpace space;
  space.zero_stage = {0, 3};
  space.sharding_group = {2, 3, 8};
  const Enumeration all = enumerate(prepare(small_dense_job()), space);
  const auto shardings = all.shardings_of({.context = 2, .data = 4});
  ASSERT_EQ(shardings.size(), 3u);  // stage 0; stage 3 over 2 and over all 8 ranks
  EXPECT_EQ(shardings[0].group, 0);
  EXPECT_EQ(shardings[1].group, 2);
  EXPECT_EQ(shardings[2].group, 8);
}

// Two nodes of four devices; each leaf has one node.
Job job_with_orders() {
  Job job = small_dense_job();
  job.cluster.inter.nodes_per_leaf = 1;
  job.training.stack.rank_orders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  return job;
}

TEST(Enumeration, HasTheOrdersOfTheStackThatDiffer) {
  const Enumeration all = enumerate(prepare(job_with_orders()), {});
  ASSERT_EQ(all.placements.size(), 2u);
  int with_both = 0;
  for (const Degrees& d : all.degrees) {
    EXPECT_EQ(d.placement, 0u);
    // Other orders need a pipeline with replicas, and Megatron-Core has them only without context
    // parallelism.
    const bool both = d.pipeline > 1 && d.data > 1 && d.context == 1;
    EXPECT_EQ(all.number_of_placements(d), both ? 2u : 1u);
    with_both += both ? 1 : 0;
  }
  EXPECT_GT(with_both, 0);
  const auto dimensions = searched_dimensions({}, all);
  EXPECT_EQ(std::count(dimensions.begin(), dimensions.end(), "rank_order"), 1);
}

TEST(Enumeration, HasOneOrderWhereAllLinksAreTheSame) {
  Job job = job_with_orders();
  job.cluster.nodes = 1;
  const Enumeration all = enumerate(prepare(job), {});
  ASSERT_FALSE(all.degrees.empty());
  for (const Degrees& d : all.degrees) EXPECT_EQ(all.number_of_placements(d), 1u);
}

// Four replicas of a node each, and two stages. A leaf of four nodes contains all four replicas in
// one order and two in the other, but no link is narrower because of it.
TEST(Enumeration, HasOneOrderWhereOnlyWhatLiesBelowALeafDiffers) {
  Job job = job_with_orders();
  job.cluster.nodes = 8;
  job.cluster.inter.nodes_per_leaf = 4;
  job.training.stack.grouped_sharding = {2, 3};
  const Enumeration all = enumerate(prepare(job), {});
  const auto d = std::find_if(all.degrees.begin(), all.degrees.end(), [](const Degrees& one) {
    return one.tensor == 4 && one.pipeline == 2 && one.data == 4;
  });
  ASSERT_NE(d, all.degrees.end());
  EXPECT_EQ(all.number_of_placements(*d), 1u);
  const auto shardings = all.shardings_of(*d);
  EXPECT_TRUE(std::any_of(shardings.begin(), shardings.end(),
                          [](const Sharding& one) { return one.group == 2; }));
}

TEST(Enumeration, HasTheOrdersThatAreNamedWhateverTheStackHas) {
  SearchSpace space;
  space.rank_order = {"tp-cp-ep-dp-pp"};
  EXPECT_EQ(enumerate(prepare(job_with_orders()), space).placements.size(), 1u);
  const PlanRequest named{.rank_order = "tp-cp-ep-pp-dp"};
  const Enumeration one = enumerate(prepare(job_with_orders()), {}, named);
  ASSERT_EQ(one.placements.size(), 1u);
  EXPECT_EQ(one.placements[0].rank_order, named.rank_order);
  // Orders that place the tensor groups elsewhere give degrees of their own.
  space.rank_order = {"tp-cp-ep-dp-pp", "pp-dp-tp-cp-ep"};
  const Enumeration apart = enumerate(prepare(job_with_orders()), space);
  EXPECT_TRUE(std::any_of(apart.degrees.begin(), apart.degrees.end(),
                          [](const Degrees& d) { return d.placement == 1; }));
}

// Experts on t·c ranks leave D replicas of them. With other experts the ranks of the pipeline would
// lie apart.
TEST(Enumeration, PutsAPipelineInsideReplicasWhereExpertsHaveAsMany) {
  Job job = small_moe_job();
  job.training.stack.rank_orders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  const Enumeration all = enumerate(prepare(job), {});
  int with_both = 0;
  for (const Degrees& d : all.degrees) {
    const bool alike = d.expert * d.expert_tensor == d.tensor * d.context;
    const bool both = all.number_of_placements(d) == 2;
    EXPECT_TRUE(!both || (alike && d.pipeline > 1 && d.data > 1));
    with_both += both ? 1 : 0;
  }
  EXPECT_GT(with_both, 0);
}

// Of 8 replicas, 4 lie in a node, which is a leaf of its own.
TEST(Enumeration, ShardsOverGroupsNearbyWhereTheStackCan) {
  Job job = small_dense_job();
  job.training.stack.grouped_sharding = {2, 3};
  job.cluster.nodes = 4;
  job.cluster.inter.nodes_per_leaf = 2;
  const auto shardings = [&job](int data, int tensor) {
    SearchSpace space;
    space.context_parallel = {1};
    const Enumeration all = enumerate(prepare(job), space);
    const auto d = std::find_if(all.degrees.begin(), all.degrees.end(), [&](const Degrees& one) {
      return one.data == data && one.tensor == tensor;
    });
    std::vector<std::pair<int, int>> found;
    for (const Sharding& one : all.shardings_of(*d)) found.emplace_back(one.zero_stage, one.group);
    return found;
  };
  using Found = std::vector<std::pair<int, int>>;
  // 16 devices, batch 8: 8 replicas with t = 2, two per node, four below a leaf.
  EXPECT_EQ(shardings(8, 2),
            Found({{0, 0}, {1, 0}, {2, 0}, {2, 2}, {2, 4}, {3, 0}, {3, 2}, {3, 4}}));
  EXPECT_EQ(shardings(4, 4), Found({{0, 0}, {1, 0}, {2, 0}, {2, 2}, {3, 0}, {3, 2}}));
  job.model = small_moe_job().model;
  const Enumeration experts = enumerate(prepare(job), {});
  EXPECT_TRUE(experts.grouped_stages.empty());
}

// Six replicas shard over pairs and threes; a group of one shards nothing.
TEST(Enumeration, ShardsOverGroupsOfEverySize) {
  Job job = small_dense_job();
  job.training.stack.grouped_sharding = {3};
  job.training.global_batch = 12;
  job.cluster.nodes = 3;
  job.cluster.inter.nodes_per_leaf = 3;
  SearchSpace space;
  space.tensor_parallel = {1};
  space.context_parallel = {1};
  space.pipeline_parallel = {2};
  const Enumeration all = enumerate(prepare(job), space);
  ASSERT_FALSE(all.degrees.empty());
  EXPECT_EQ(all.group_sizes[all.degrees.front().groups], (std::vector<int>{2, 3}));
}

TEST(Enumeration, KeepsToTheSpace) {
  SearchSpace space;
  space.tensor_parallel = {2};
  space.pipeline_parallel = {2, 4};
  space.zero_stage = {1};
  space.recompute = {{{RecomputeMode::full, 0}, {}}};
  space.micro_batch = {1};
  space.schedule = {"1f1b"};
  space.context_parallel_algorithm = {"ring"};
  space.sequence_parallel = {false};
  const Enumeration all = enumerate(prepare(small_dense_job()), space);
  EXPECT_EQ(all.zero_stages, vector<int>({1}));
  ASSERT_EQ(all.recomputes.size(), 1u);
  EXPECT_EQ(all.recomputes[0].every_stage.mode, RecomputeMode::full);
  // c·p·D = 4 with p ≥ 2: (c, D) of (1,2) (2,1) at p = 2 and (1,1) at p = 4, one shape each.
  EXPECT_EQ(all.degrees.size(), 3u);
  EXPECT_EQ(all.size(), 3);
}

// 8 = t·c·p·D with 2 ≤ t ≤ 7 and p ≤ 2: t is 2 or 4, and ZeRO stages below 2 are left.
TEST(Enumeration, KeepsToTheBoundsOfTheSpace) {
  SearchSpace space;
  space.tensor_parallel = Numbers::between(2, 7);
  space.pipeline_parallel = Numbers::between(0, 2);
  space.zero_stage = Numbers::between(0, 1);
  space.sharding_group = Numbers::between(2, 5);
  const Enumeration all = enumerate(prepare(small_dense_job()), space);
  EXPECT_EQ(all.zero_stages, vector<int>({0, 1}));
  std::set<int> tensors, pipelines;
  for (const Degrees& degrees : all.degrees) {
    tensors.insert(degrees.tensor);
    pipelines.insert(degrees.pipeline);
  }
  EXPECT_EQ(tensors, std::set<int>({2, 4}));
  EXPECT_EQ(pipelines, std::set<int>({1, 2}));
  const auto shardings = all.shardings_of({.context = 2, .data = 4});
  ASSERT_EQ(shardings.size(), 3u);  // stage 0; stage 1 over 2 and over 4 of the 8 ranks
  EXPECT_EQ(shardings[1].group, 2);
  EXPECT_EQ(shardings[2].group, 4);
}

TEST(Enumeration, TakesAsManyStagesAsRecomputationIsNamedFor) {
  SearchSpace space;
  space.recompute = {{{}, {{RecomputeMode::full, 1}, {}}}};
  const Enumeration all = enumerate(prepare(small_dense_job()), space);
  ASSERT_FALSE(all.degrees.empty());
  for (const Degrees& degrees : all.degrees) EXPECT_EQ(degrees.pipeline, 2);
  space.recompute.push_back({{RecomputeMode::full, 2}, {}});
  const Enumeration more = enumerate(prepare(small_dense_job()), space);
  EXPECT_EQ(more.recomputes_of({.pipeline = 2}), 2u);
  EXPECT_EQ(more.recomputes_of({.pipeline = 4}), 1u);
}

// Degrees that shard alike share a list, and it is the right one for each of them.
TEST(Enumeration, SharesListsOfShardingsAmongDegreesThatShardAlike) {
  Job job = small_moe_job();
  job.cluster.nodes = 4;
  job.cluster.inter.nodes_per_leaf = 2;
  job.cluster.device.host_bandwidth = BytesPerSecond(64e9);
  job.training.stack.grouped_sharding = {2, 3};
  job.training.stack.offload = {.optimizer = {1}, .states = {2, 3}};
  SearchSpace named;
  named.sharding_group = {2, 4};
  for (const SearchSpace& space : {SearchSpace{}, named}) {
    const Enumeration all = enumerate(prepare(job), space);
    for (const Degrees& d : all.degrees) EXPECT_EQ(all.shardings[d.shardings], all.shardings_of(d));
    EXPECT_GT(all.shardings.size(), 1u);
    EXPECT_LT(all.shardings.size(), all.degrees.size());
  }
}

std::vector<int> stages_of(const Enumeration& all, int pipeline) {
  return all.zero_stages_of({.pipeline = pipeline, .data = 4});
}

// Megatron-FSDP runs without a pipeline; torchtitan has no ZeRO-1.
TEST(Enumeration, HasTheZeroStagesOfTheStackUnlessTheyAreNamed) {
  Job job = small_dense_job();
  EXPECT_EQ(stages_of(enumerate(prepare(job), {}), 2), (std::vector<int>{0, 1, 2, 3}));
  job.training.stack.pipeline_zero_stages = {0, 1};
  EXPECT_EQ(stages_of(enumerate(prepare(job), {}), 1), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(stages_of(enumerate(prepare(job), {}), 2), (std::vector<int>{0, 1}));
  SearchSpace named;
  named.zero_stage = {2, 3};
  EXPECT_EQ(stages_of(enumerate(prepare(job), named), 2), (std::vector<int>{2, 3}));
  job.training.stack.pipeline_zero_stages.clear();
  job.training.stack.zero_stages = {0, 2, 3};
  EXPECT_EQ(stages_of(enumerate(prepare(job), {}), 1), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(stages_of(enumerate(prepare(job), {}), 2), (std::vector<int>{0, 2, 3}));
}

TEST(Enumeration, OffloadsWhatTheStackCanUnlessItIsNamed) {
  Job job = small_dense_job();
  job.training.stack.offload = {.optimizer = {1}, .states = {2, 3}};
  const auto shardings = [&job](const SearchSpace& space, const PlanRequest& base, int data) {
    Degrees degrees;
    degrees.data = data;
    const Enumeration all = enumerate(prepare(job), space, base);
    return all.shardings_of(degrees);
  };
  const Offload optimizer{.optimizer = OffloadTarget::host};
  job.cluster.device.host_bandwidth = BytesPerSecond(0);
  EXPECT_EQ(shardings({}, {}, 8).size(), 4u);  // no link to the hosts is known
  job.cluster.device.host_bandwidth = BytesPerSecond(64e9);
  const std::vector<Sharding> list = shardings({}, {}, 8);
  ASSERT_EQ(list.size(), 7u);  // four stages, the optimizer under one, the states under two
  EXPECT_EQ(list[4].offload, optimizer);
  EXPECT_EQ(list[4].zero_stage, 1);
  EXPECT_EQ(list[4].on_device, 1u);
  EXPECT_EQ(list[6].zero_stage, 3);
  EXPECT_EQ(list[6].on_device, 3u);
  // A single rank shards nothing, but under ZeRO-3 it moves the states layer by layer.
  EXPECT_EQ(shardings({}, {}, 1).size(), 4u);
  EXPECT_EQ(shardings({}, {.offload = optimizer}, 8).size(), 4u);
  const std::vector<Sharding> named = shardings({.offload = {"all"}}, {}, 8);
  ASSERT_EQ(named.size(), 4u);
  EXPECT_EQ(named[2].on_device, 2u);
}

TEST(Enumeration, ListsAZeroStageOnceWhereThereIsNothingToShard) {
  const Enumeration all = enumerate(prepare(small_dense_job()), {});
  EXPECT_EQ(all.zero_stages_of({.tensor = 4, .pipeline = 2}), vector<int>({0}));
  EXPECT_EQ(all.zero_stages_of({.tensor = 4, .data = 2}), vector<int>({0, 1, 2, 3}));
  EXPECT_EQ(all.zero_stages_of({.tensor = 4, .context = 2}), vector<int>({0, 1, 2, 3}));
  const SearchedOffload states{{.optimizer = OffloadTarget::host}, {1, 2, 3}};
  EXPECT_EQ(all.zero_stages_of({.tensor = 4, .pipeline = 2}, states), vector<int>({1, 2, 3}));
}

// FSDP's shards are the optimizer's fp32 copy; a 16-bit copy exists only while it is whole.
TEST(Enumeration, HasZeroThreeOfOneRankWhereItKeepsFewerWeights) {
  Job job = small_dense_job();
  job.training.stack.keeps_weight_copy = false;
  const Enumeration all = enumerate(prepare(job), {});
  EXPECT_EQ(all.zero_stages_of({.tensor = 4, .pipeline = 2}), vector<int>({0, 3}));
}

TEST(Enumeration, ShardsExpertsOverTensorRanksToo) {
  // t = 4 and e = e_t = 1: D_e = 4 even though D·c = 1.
  const Enumeration all = enumerate(prepare(small_moe_job()), {});
  EXPECT_EQ(all.zero_stages_of({.tensor = 4, .pipeline = 2}).size(), 4u);
  EXPECT_EQ(all.zero_stages_of({.tensor = 4, .pipeline = 2, .expert = 4}).size(), 1u);
}

TEST(Enumeration, LeavesOutSelectiveRecomputationOfACoreThatKeepsNothing) {
  Job job = small_dense_job();
  EXPECT_EQ(enumerate(prepare(job), {}).recomputes.size(), 2u);
  job.training.stack.flash_attention = false;
  EXPECT_EQ(enumerate(prepare(job), {}).recomputes.size(), 3u);
  job.training.stack.flash_attention = true;
  job.training.stack.selective = SelectiveRecompute::every_second_matmul;
  EXPECT_EQ(enumerate(prepare(job), {}).recomputes.size(), 3u);
}

TEST(Enumeration, HasOneShapePerMicroBatchWithoutAPipeline) {
  const Enumeration all = enumerate(prepare(small_dense_job()), {});
  for (const Degrees& d : all.degrees) {
    if (d.pipeline == 1) {
      // Micro-batches that divide 8/D.
      EXPECT_EQ(all.shapes[d.shapes].size(), divisors(8 / d.data).size());
      EXPECT_EQ(all.shapes[d.shapes][0].schedule->name, "1f1b");
    }
  }
}

TEST(Enumeration, PutsDegreesInsideADomainFirst) {
  const Enumeration all = enumerate(prepare(small_dense_job()), {});
  const auto outside = [](const Degrees& d) { return d.tensor * d.context > 4; };
  EXPECT_TRUE(std::is_partitioned(all.degrees.begin(), all.degrees.end(),
                                  [&](const Degrees& d) { return !outside(d); }));
  EXPECT_TRUE(outside(all.degrees.back()));
}

TEST(Enumeration, ExpertDegreesDivideExpertsAndRanks) {
  bool folded = false;
  for (const Degrees& d : enumerate(prepare(small_moe_job()), {}).degrees) {
    EXPECT_EQ(4 % d.expert, 0);
    EXPECT_EQ(d.tensor * d.context * d.data % (d.expert * d.expert_tensor), 0);
    folded = folded || (d.expert == 4 && d.tensor == 4 && d.data == 1);
  }
  EXPECT_TRUE(folded) << "experts may re-use the tensor-parallel ranks";
}

// What was listed before the search was stopped is a part of all: at least the first degrees.
TEST(Enumeration, EndsWhenItIsOver) {
  const PreparedJob job = prepare(small_moe_job());
  const auto key = [](const Degrees& d) {
    return std::tuple(d.tensor, d.context, d.pipeline, d.data, d.expert, d.expert_tensor,
                      d.sequence_parallel, d.algorithm);
  };
  const Enumeration all = enumerate(job, {});
  EXPECT_TRUE(all.complete);
  std::size_t before = 0;
  for (int asked = 0; asked < 12; ++asked) {
    int left = asked;
    const Enumeration some = enumerate(job, {}, {}, [&left] { return left-- <= 0; });
    EXPECT_FALSE(some.complete);
    EXPECT_GT(some.degrees.size(), before);
    EXPECT_LT(some.degrees.size(), all.degrees.size());
    before = some.degrees.size();
    for (const Degrees& d : some.degrees) {
      EXPECT_TRUE(std::ranges::any_of(all.degrees,
                                      [&](const Degrees& other) { return key(other) == key(d); }));
    }
  }
}

}  // namespace
}  // namespace trainyard
