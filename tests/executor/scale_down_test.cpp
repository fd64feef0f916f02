// Scales every plan down to every number of ranks. The smaller plan is legal and made of whole
// stages of the plan; it is refused only if a layer of one replica needs more ranks than there are.
#include "executor/scale_down.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "model/program/check.h"
#include "model/program/lower.h"
#include "model/schedule/listed.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

struct PlanCase {
  Job job;
  PlanRequest request;
  Plan plan;
};

PlanCase plan_case(Transformer model, const PlanRequest& request, std::int64_t batch) {
  PlanCase made{{std::move(model), {}, tiny_training()}, request, {}};
  made.job.training.global_batch = batch;
  made.job.cluster.device.name = "a device";
  made.job.cluster.device.rates.gemm[static_cast<std::size_t>(Dtype::bf16)].per_multiprocessor =
      FlopsPerSecond(1e12);
  made.job.cluster.devices_per_node = request.tensor_parallel * request.context_parallel;
  made.job.cluster.nodes = request.pipeline_parallel * request.data_parallel.value_or(1);
  auto plan = make_plan(request, made.job.model, made.job.cluster, made.job.training);
  EXPECT_TRUE(plan) << plan.error().where << ": " << plan.error().message;
  if (plan) made.plan = *plan;
  return made;
}

Transformer with_layers(Transformer model, int layers) {
  model.layers = layers;
  return model;
}

PlanRequest pipeline(int stages, const char* schedule, int chunks = 1) {
  PlanRequest request;
  request.pipeline_parallel = stages;
  request.schedule = schedule;
  if (chunks > 1) request.virtual_stages = chunks;
  return request;
}

Plan plan_of(const ScaledDown& smaller) {
  auto plan =
      make_plan(smaller.request, smaller.job.model, smaller.job.cluster, smaller.job.training);
  EXPECT_TRUE(plan) << plan.error().where << ": " << plan.error().message;
  return plan ? *plan : Plan{};
}

std::vector<int> layers_of_stages(const Plan& plan, int layers) {
  const PipelineShape shape = pipeline_shape(plan);
  const LayersOfChunks of(plan, layers);
  std::vector<int> sums(static_cast<std::size_t>(plan.pipeline_parallel));
  for (int chunk = 0; chunk < layer_chunks(shape); ++chunk) {
    sums[static_cast<std::size_t>(place_of(shape, 0, chunk).stage)] += of[chunk];
  }
  return sums;
}

// Whether each stage of the smaller plan is one of the plan's stages, in their order.
bool are_among(const std::vector<int>& some, const std::vector<int>& all) {
  auto at = all.begin();
  for (const int each : some) {
    at = std::find(at, all.end(), each);
    if (at == all.end()) return false;
    ++at;
  }
  return true;
}

void expect_faithful(const PlanCase& of, const ScaledDown& smaller, int ranks) {
  const Plan plan = plan_of(smaller);
  EXPECT_LE(plan.devices(), ranks);
  EXPECT_EQ(smaller.changes.empty(), plan.devices() == of.plan.devices());
  EXPECT_EQ(plan.tensor_parallel, of.plan.tensor_parallel);
  EXPECT_EQ(plan.context_parallel, of.plan.context_parallel);
  EXPECT_EQ(plan.microbatches, of.plan.microbatches);
  EXPECT_EQ(plan.micro_batch, of.plan.micro_batch);
  EXPECT_EQ(plan.zero_stage, of.plan.zero_stage);
  EXPECT_EQ(smaller.job.model.experts / plan.expert_parallel,
            of.job.model.experts / of.plan.expert_parallel);
  const auto stages = layers_of_stages(plan, smaller.job.model.layers);
  EXPECT_EQ(std::accumulate(stages.begin(), stages.end(), 0), smaller.job.model.layers);
  EXPECT_TRUE(are_among(stages, layers_of_stages(of.plan, of.job.model.layers)))
      << fmt::format("{} of {}", stages.front(), smaller.job.model.layers);
  const auto program = lower(smaller.job.model, smaller.job.training, plan);
  ASSERT_TRUE(program) << program.error().message;
  const auto checked = check(*program, RankLayout(plan, smaller.job.model.kv_heads));
  EXPECT_TRUE(checked) << checked.error().message;
}

std::vector<PlanCase> many_plans() {
  std::vector<PlanCase> cases;
  const auto add = [&cases](const Transformer& model, PlanRequest request, int data,
                            int microbatches) {
    request.data_parallel = data;
    cases.push_back(plan_case(model, request, std::int64_t{data} * microbatches));
  };
  const Transformer network = with_layers(tiny_llama(false), 16);
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-h2", "dualpipe"}) {
    for (const int stages : {2, 4, 8}) add(network, pipeline(stages, schedule), 2, 16);
  }
  for (const int stages : {2, 3, 8}) {
    add(with_layers(tiny_gpt(true), 6 * stages), pipeline(stages, "interleaved-1f1b", 2), 1,
        2 * stages);
    add(network, pipeline(stages, "zb-v", 2), 1, 8);
  }
  add(with_layers(network, 10), pipeline(4, "1f1b"), 3, 4);  // 2, 3, 3, 2 layers
  PlanRequest uneven = pipeline(4, "1f1b");
  uneven.layers_per_stage = {1, 5, 6, 4};
  uneven.recompute_per_stage = {{}, {RecomputeMode::full, 2}, {RecomputeMode::selective}, {}};
  add(network, uneven, 2, 4);
  for (const int group : {2, 4}) {
    PlanRequest sharded;
    sharded.zero_stage = 3;
    sharded.sharding_group = group;
    add(network, sharded, 8, 1);
    sharded.context_parallel = 2;
    add(network, sharded, 4, 1);
  }
  for (const int parallel : {2, 4}) {
    PlanRequest experts = pipeline(2, "1f1b");
    experts.expert_parallel = parallel;
    add(with_layers(tiny_moe(), 8), experts, 4, 2);
    experts.tensor_parallel = 2;
    add(with_layers(tiny_moe(), 8), experts, 4, 2);
    experts.expert_tensor_parallel = 2;
    add(with_layers(tiny_moe(), 8), experts, 4, 2);
  }
  return cases;
}

TEST(ScaleDown, DerivesAPlanForEveryNumberOfRanksThatHasALayer) {
  for (const PlanCase& of : many_plans()) {
    for (int ranks = 1; ranks <= of.plan.devices() + 1; ++ranks) {
      SCOPED_TRACE(fmt::format(
          "{} t{} c{} p{} v{} D{} e{} e_t{} on {}", of.plan.schedule->name, of.plan.tensor_parallel,
          of.plan.context_parallel, of.plan.pipeline_parallel, of.plan.virtual_stages,
          of.plan.data_parallel, of.plan.expert_parallel, of.plan.expert_tensor_parallel, ranks));
      const auto smaller = scale_down(of.job, of.request, of.plan, ranks);
      if (smaller) {
        expect_faithful(of, *smaller, ranks);
        continue;
      }
      // A token needs two ranks if it passes two experts with one per rank, or experts that are cut
      // in two.
      const int layer = of.plan.tensor_parallel * of.plan.context_parallel;
      const bool one_on_rank = of.job.model.experts == of.plan.expert_parallel;
      const int experts = of.plan.expert_tensor_parallel * (one_on_rank ? 2 : 1);
      EXPECT_LT(ranks, std::max(layer, experts)) << smaller.error().message;
      EXPECT_NE(smaller.error().message.find(fmt::format("found {}", ranks)), std::string::npos);
    }
  }
}

// Takes as many stages as the schedule allows with the same number of micro-batches.
TEST(ScaleDown, TakesTheMostStagesThatTheScheduleHas) {
  const Transformer network = with_layers(tiny_llama(false), 8);
  for (const auto& [request, stages, schedule] :
       {std::tuple{pipeline(4, "dualpipe"), 2, "dualpipe"},
        std::tuple{pipeline(4, "interleaved-1f1b", 2), 2, "interleaved-1f1b"},
        std::tuple{pipeline(4, "1f1b"), 3, "1f1b"},
        std::tuple{pipeline(4, "zb-v", 2), 3, "zb-v"}}) {
    const PlanCase of = plan_case(network, request, 8);
    const auto smaller = scale_down(of.job, of.request, of.plan, 3);
    ASSERT_TRUE(smaller) << smaller.error().message;
    const Plan plan = plan_of(*smaller);
    EXPECT_EQ(plan.pipeline_parallel, stages) << schedule;
    EXPECT_EQ(plan.schedule->name, schedule);
    EXPECT_EQ(smaller->job.model.layers, 2 * stages) << schedule;
    EXPECT_EQ(smaller->changes.front(), fmt::format("layers 8 → {}", 2 * stages));
  }
}

// Groups of four do not divide six replicas, but they divide four. For two replicas the groups
// shrink.
TEST(ScaleDown, KeepsShardingGroupsWhereItCan) {
  PlanRequest request;
  request.zero_stage = 3;
  request.sharding_group = 4;
  request.data_parallel = 8;
  const PlanCase of = plan_case(tiny_llama(false), request, 8);
  for (const auto& [ranks, replicas, group] :
       {std::tuple{7, 4, 4}, {6, 4, 4}, {4, 4, 4}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}}) {
    const auto smaller = scale_down(of.job, of.request, of.plan, ranks);
    ASSERT_TRUE(smaller) << smaller.error().message;
    const Plan plan = plan_of(*smaller);
    EXPECT_EQ(plan.data_parallel, replicas) << ranks;
    EXPECT_EQ(plan.sharding_group, group) << ranks;
    EXPECT_EQ(smaller->job.training.global_batch, replicas) << ranks;
  }
}

// A user's own pass list fits its own number of stages only.
TEST(ScaleDown, ReplacesAnOrderOfPassesThatFewerStagesCannotHave) {
  PlanRequest request;
  request.pipeline_parallel = 3;
  const PlanCase given = plan_case(with_layers(tiny_llama(false), 6), request, 4);
  auto listed = list_schedule("mine", pipeline_shape(given.plan),
                              given.plan.schedule->passes(pipeline_shape(given.plan)), false);
  ASSERT_TRUE(listed) << listed.error().message;
  request.passes = *std::move(listed);
  const PlanCase of = plan_case(with_layers(tiny_llama(false), 6), request, 4);
  const auto smaller = scale_down(of.job, of.request, of.plan, 2);
  ASSERT_TRUE(smaller) << smaller.error().message;
  EXPECT_EQ(plan_of(*smaller).pipeline_parallel, 2);
  EXPECT_NE(std::find(smaller->changes.begin(), smaller->changes.end(), "schedule mine → 1f1b"),
            smaller->changes.end());
}

// The network has 3 dense layers and 9 with experts on four stages. The one stage that is kept has
// experts.
TEST(ScaleDown, KeepsExpertsInTheOneStageThatIsLeft) {
  Transformer network = with_layers(tiny_moe(), 12);
  network.moe_every = 1;
  network.dense_layers = 3;
  const PlanCase of = plan_case(network, pipeline(4, "1f1b"), 4);
  const auto smaller = scale_down(of.job, of.request, of.plan, 1);
  ASSERT_TRUE(smaller) << smaller.error().message;
  EXPECT_EQ(smaller->job.model.layers, 3);
  EXPECT_EQ(smaller->job.model.dense_layers, 0);
}

std::vector<LayerKind> kinds_of(const Transformer& model, int first, int count) {
  std::vector<LayerKind> kinds;
  for (int i = 0; i < count; ++i) kinds.push_back(layer_kind(model, first + i));
  return kinds;
}

// Twelve layers on four stages, with experts (M) in every second one: D M D, M D M, D M D, M D M.
// The first and third stage are alike, and so are the second and fourth.
TEST(ScaleDown, KeepsTheKindsOfTheLayersOfAStage) {
  Transformer network = with_layers(tiny_moe(), 12);
  network.dense_layers = 0;
  network.moe_every = 2;
  const PlanCase of = plan_case(network, pipeline(4, "1f1b"), 4);
  for (int ranks = 1; ranks <= 3; ++ranks) {
    const auto smaller = scale_down(of.job, of.request, of.plan, ranks);
    ASSERT_TRUE(smaller) << smaller.error().message;
    const Transformer& model = smaller->job.model;
    const int stages = plan_of(*smaller).pipeline_parallel;
    EXPECT_EQ(stages, ranks == 3 ? 2 : ranks);  // three would begin D M D, D M D or M D M, M D M
    EXPECT_EQ(kinds_of(model, 0, 3), kinds_of(network, 0, 3)) << ranks;
    if (stages == 2) {
      EXPECT_EQ(kinds_of(model, 3, 3), kinds_of(network, 9, 3));
    }
    for (const std::string& change : smaller->changes) {
      EXPECT_EQ(change.find("another kind"), std::string::npos) << change;
    }
  }
}

// Four stages of six layers; the last layer of each stage has no window.
TEST(ScaleDown, KeepsTheWindowsOfTheLayersOfAStage) {
  Transformer network = with_layers(tiny_llama(false), 24);
  network.sliding_window = 4;
  network.full_attention_every = 6;
  const PlanCase of = plan_case(network, pipeline(4, "1f1b"), 4);
  for (int ranks = 1; ranks <= 3; ++ranks) {
    const auto smaller = scale_down(of.job, of.request, of.plan, ranks);
    ASSERT_TRUE(smaller) << smaller.error().message;
    EXPECT_EQ(plan_of(*smaller).pipeline_parallel, ranks);
    for (int stage = 0; stage < ranks; ++stage) {
      EXPECT_EQ(kinds_of(smaller->job.model, 6 * stage, 6), kinds_of(network, 0, 6)) << ranks;
    }
  }
}

// Four stages of six layers; those of the first attend in full. That stage stays beside others.
TEST(ScaleDown, KeepsTheLeadingLayersOfFullAttentionWithTheirStage) {
  Transformer network = with_layers(tiny_llama(false), 24);
  network.sliding_window = 4;
  network.full_attention_layers = 6;
  const PlanCase of = plan_case(network, pipeline(4, "1f1b"), 4);
  for (int ranks = 1; ranks <= 3; ++ranks) {
    const auto smaller = scale_down(of.job, of.request, of.plan, ranks);
    ASSERT_TRUE(smaller) << smaller.error().message;
    const Transformer& model = smaller->job.model;
    EXPECT_EQ(kinds_of(model, 6 * (ranks - 1), 6), kinds_of(network, ranks > 1 ? 18 : 0, 6));
    for (const std::string& change : smaller->changes) {
      EXPECT_EQ(change.find("another kind"), std::string::npos) << change;
    }
  }
}

// D and M on two stages. M is kept, which is a network with experts in every layer.
TEST(ScaleDown, NamesAnotherOrderOfKindsWhereItIsThatOfTheStage) {
  Transformer network = with_layers(tiny_moe(), 2);
  network.dense_layers = 0;
  network.moe_every = 2;
  const PlanCase of = plan_case(network, pipeline(2, "1f1b"), 4);
  const auto smaller = scale_down(of.job, of.request, of.plan, 1);
  ASSERT_TRUE(smaller) << smaller.error().message;
  EXPECT_EQ(smaller->job.model.layers, 1);
  EXPECT_TRUE(layer_kind(smaller->job.model, 0).moe);
  EXPECT_NE(std::ranges::find(smaller->changes, "moe_every 2 → 1"), smaller->changes.end());
}

// The chunks of two stages are D M D, D M D and M D M, M D M. No network has six layers in a row
// like the first stage; D M D M D M differs in three of them. No other stage for one rank can be
// described better.
TEST(ScaleDown, SaysHowManyLayersAreOfAnotherKindWhereNoStageCanStay) {
  Transformer network = with_layers(tiny_moe(), 12);
  network.dense_layers = 0;
  network.moe_every = 2;
  const PlanCase of = plan_case(network, pipeline(2, "interleaved-1f1b", 2), 4);
  const auto smaller = scale_down(of.job, of.request, of.plan, 1);
  ASSERT_TRUE(smaller) << smaller.error().message;
  EXPECT_EQ(smaller->changes.front(), "3 of 6 layers of another kind than the plan's");
}

// Four experts on four ranks, two per token: on two ranks there are two experts; on one rank there
// is no room.
TEST(ScaleDown, LeavesOutExpertsLast) {
  PlanRequest request;
  request.expert_parallel = 4;
  request.data_parallel = 4;
  const PlanCase of = plan_case(tiny_moe(), request, 4);
  const auto two = scale_down(of.job, of.request, of.plan, 3);
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->job.model.experts, 2);
  EXPECT_EQ(plan_of(*two).expert_parallel, 2);
  EXPECT_EQ(plan_of(*two).data_parallel, 2);
  const auto one = scale_down(of.job, of.request, of.plan, 1);
  ASSERT_FALSE(one);
  EXPECT_NE(one.error().message.find("a token needs 2"), std::string::npos) << one.error().message;
}

}  // namespace
}  // namespace trainyard
