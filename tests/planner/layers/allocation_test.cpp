// Compares the dynamic programme with every allocation of small instances, and its problem with the
// cost model's own memory and time.
#include "planner/layers/allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <utility>

#include "model/cost/compute.h"
#include "model/cost/estimate.h"
#include "model/plan/layer_shard.h"
#include "tests/planner/jobs.h"
#include "tests/planner/layers/every_allocation.h"

namespace trainyard {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// ---- Instances -----------------------------------------------------------------------------

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  double number(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  bool coin() { return number(0, 1) < 0.5; }

  AllocationProblem problem(int layers, int stages) {
    AllocationProblem problem;
    const bool whole = coin();  // whole numbers have ties
    const auto value = [&](double low, double high) {
      const double drawn = number(low, high);
      return whole ? std::round(drawn) : drawn;
    };
    for (int i = 0; i < layers; ++i) {
      AllocatedLayer layer;
      layer.time = Seconds(value(1, 6));
      layer.selective = Seconds(value(0, 1));
      layer.full = Seconds(value(0, 3));
      layer.states = Bytes(value(0, 5));
      layer.saved = Bytes(value(2, 9));
      layer.saved_selective = layer.saved * number(0.4, 1);
      layer.saved_by_full = layer.saved * number(0, 0.4);
      layer.between_halves = layer.saved * (coin() ? 1 : number(0.4, 1));
      layer.gradients = Bytes(value(0, 2));
      layer.gathered = Bytes(value(0, 2));
      layer.gathered_beside = Bytes(value(0, 1));
      problem.layers.push_back(layer);
    }
    for (int j = 0; j < stages; ++j) {
      AllocatedStage stage{.time = Seconds(value(0, 4)),
                           .fixed = Bytes(value(0, 5)),
                           .head = Bytes(value(0, 8)),
                           .capacity = Bytes(value(10, 25.0 * layers)),
                           .in_flight = static_cast<double>(stages - j),
                           .slowness = coin() ? 1 : number(0.5, 2)};
      if (coin()) {
        stage.at_work = coin() ? 1 : 0.5;
        stage.between_halves = number(stage.at_work, stage.in_flight);
        stage.chunks = 0;
        if (coin()) stage.past_input_gradient = number(0, stage.in_flight - 1);
      }
      if (stage.chunks > 0 && coin()) stage.chunks = 2;
      problem.stages.push_back(stage);
    }
    problem.microbatches = static_cast<int>(number(1, 12));
    problem.fill = coin() ? 1 : number(0, 1);
    problem.none = number(0, 1) < 0.9;
    problem.selective = coin();
    problem.full = coin() || !problem.none;
    return problem;
  }

 private:
  std::mt19937 random_;
};

// Expects the optimum of brute force; returns the allocation, or nothing if none fits.
std::optional<Allocation> expect_brute_force(const AllocationProblem& problem) {
  auto found = allocate_layers(problem);
  const double best = brute_force(problem);
  EXPECT_EQ(found.has_value(), best < kInfinity);
  if (found) {
    EXPECT_NEAR(found->step.value(), best, 1e-9 * best);
  }
  return found;
}

// A fixed number of recomputed layers per stage, or all layers where a stage has fewer: what is
// named is not chosen.
TEST(Allocation, EqualsBruteForceWhereFullRecomputationIsNamed) {
  Draw draw(17);
  int fitting = 0;
  for (int i = 0; i < 300; ++i) {
    AllocationProblem problem = draw.problem(1 + i % 9, 1 + i % 4);
    problem.none = problem.selective = false;
    problem.full = true;
    problem.full_layers = 1 + i % 5;
    const auto found = expect_brute_force(problem);
    ASSERT_FALSE(testing::Test::HasFailure()) << i;
    if (!found) continue;
    ++fitting;
    for (const StageAllocation& stage : found->stages) {
      EXPECT_EQ(stage.recompute.full_layers, std::min(problem.full_layers, stage.layers)) << i;
    }
  }
  EXPECT_GT(fitting, 50);
}

TEST(Allocation, EqualsBruteForceUpToTenLayersOnFourStages) {
  constexpr int kInstances = 50;  // of each size
  Draw draw(5);
  int fitting = 0;
  for (int layers = 1; layers <= 10; ++layers) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (int i = 0; i < kInstances; ++i) {
        if (expect_brute_force(draw.problem(layers, stages))) ++fitting;
        ASSERT_FALSE(testing::Test::HasFailure()) << layers << " on " << stages;
      }
    }
  }
  EXPECT_GT(fitting, 1000);
}

// With like layers a stage's time depends only on its number of layers.
TEST(Allocation, EqualsBruteForceWhereAllLayersAreAlike) {
  Draw draw(29);
  int fitting = 0;
  for (int i = 0; i < 400; ++i) {
    AllocationProblem problem = draw.problem(1 + i % 10, 1 + i % 4);
    std::ranges::fill(problem.layers, AllocatedLayer(problem.layers.front()));
    if (expect_brute_force(problem)) ++fitting;
    ASSERT_FALSE(testing::Test::HasFailure()) << i;
  }
  EXPECT_GT(fitting, 200);
}

// Layers that are heavy where the pattern has a one.
std::vector<AllocatedLayer> layers_of(int layers, unsigned pattern) {
  const AllocatedLayer light{.time = Seconds(2),
                             .selective = Seconds(0.25),
                             .full = Seconds(1),
                             .states = Bytes(1),
                             .saved = Bytes(3),
                             .saved_selective = Bytes(2),
                             .saved_by_full = Bytes(0.5),
                             .between_halves = Bytes(2.5),
                             .gradients = Bytes(1),
                             .gathered = Bytes(0.5),
                             .gathered_beside = Bytes(0.25)};
  const AllocatedLayer heavy{.time = Seconds(5),
                             .selective = Seconds(0.5),
                             .full = Seconds(2),
                             .states = Bytes(2),
                             .saved = Bytes(7),
                             .saved_selective = Bytes(5),
                             .saved_by_full = Bytes(1),
                             .between_halves = Bytes(7),
                             .gradients = Bytes(2),
                             .gathered = Bytes(1),
                             .gathered_beside = Bytes(0.5)};
  std::vector<AllocatedLayer> all;
  for (int i = 0; i < layers; ++i) all.push_back((pattern >> i & 1U) != 0 ? heavy : light);
  return all;
}

// The second stage is slower; the first has the embedding, the last the head.
std::vector<AllocatedStage> stages_with(int stages, double memory) {
  std::vector<AllocatedStage> all;
  for (int j = 0; j < stages; ++j) {
    const bool last = j + 1 == stages;
    all.push_back({.time = Seconds(j == 0 || last ? 1.5 : 0.5),
                   .fixed = Bytes(j == 0 ? 2 : 1),
                   .head = Bytes(last ? 3 : 0),
                   .capacity = Bytes(memory),
                   .in_flight = static_cast<double>(stages - j),
                   .slowness = j == 1 ? 1.5 : 1});
  }
  return all;
}

// Tries every set of policies and returns how many of them fit.
int expect_brute_force_on_policies(AllocationProblem problem) {
  int fitting = 0;
  for (unsigned policies = 1; policies < 8; ++policies) {
    problem.none = (policies & 1U) != 0;
    problem.selective = (policies & 2U) != 0;
    problem.full = (policies & 4U) != 0;
    if (expect_brute_force(problem)) ++fitting;
  }
  return fitting;
}

// Light and heavy layers in every order, up to `most_layers`, on up to four stages, with little,
// some and enough memory.
int expect_brute_force_on_all(int most_layers) {
  int fitting = 0;
  for (int layers = 1; layers <= most_layers; ++layers) {
    for (unsigned pattern = 0; pattern < 1U << layers; ++pattern) {
      AllocationProblem problem{.layers = layers_of(layers, pattern), .microbatches = 6};
      for (int stages = 1; stages <= 4; ++stages) {
        for (const double memory : {6.0, 14.0, 60.0}) {
          problem.stages = stages_with(stages, memory * layers / stages + 8);
          fitting += expect_brute_force_on_policies(problem);
          if (testing::Test::HasFailure()) return fitting;
        }
      }
    }
  }
  return fitting;
}

TEST(Allocation, EqualsBruteForceOnAllInstancesUpToFiveLayers) {
  const int all = 62 * 4 * 3 * 7;
  const int fitting = expect_brute_force_on_all(5);
  EXPECT_GT(fitting, all / 2);
  EXPECT_LT(fitting, all);
}

// A minute: --gtest_also_run_disabled_tests.
TEST(Allocation, DISABLED_EqualsBruteForceOnAllInstancesUpToTenLayers) {
  EXPECT_GT(expect_brute_force_on_all(10), 2046 * 4 * 3 * 7 / 2);
}

TEST(Allocation, BalancesLayersAsTheGoldenValuesSay) {
  // golden.md: least maximum of contiguous parts.
  const auto least = [](std::vector<double> times, int stages) {
    AllocationProblem problem;
    problem.fill = 0;
    for (const double time : times) problem.layers.push_back({.time = Seconds(time)});
    problem.stages.assign(at(stages), {.capacity = Bytes(1)});
    return allocate_layers(problem)->step.value();
  };
  EXPECT_EQ(least({2, 1, 1, 1, 1, 1, 1, 1, 1, 4}, 4), 4);
  EXPECT_EQ(least({3, 1, 4, 1, 5, 9, 2, 6}, 3), 14);
}

TEST(Allocation, TakesAFastDeviceForMoreLayers) {
  AllocationProblem problem;
  problem.microbatches = 100;
  problem.layers.assign(9, {.time = Seconds(1)});
  problem.stages.assign(2, {.capacity = Bytes(1)});
  problem.stages[1].slowness = 0.5;
  const auto found = allocate_layers(problem);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->stages[0].layers, 3);  // 3 · 1 = 6 · 0.5
  EXPECT_EQ(found->stages[1].layers, 6);
}

TEST(Allocation, RecomputesJustBeforeAndNotAtTheLimit) {
  // Three layers of 4 bytes, two in flight: 24 bytes.
  AllocationProblem problem;
  problem.selective = false;
  problem.layers.assign(3, {.time = Seconds(2), .full = Seconds(1), .saved = Bytes(4)});
  problem.stages.assign(1, {.capacity = Bytes(24), .in_flight = 2});
  EXPECT_EQ(allocate_layers(problem)->stages[0].recompute.mode, RecomputeMode::none);
  problem.stages[0].capacity = Bytes(23.99);
  const auto found = allocate_layers(problem);
  EXPECT_EQ(found->stages[0].recompute, (Recompute{RecomputeMode::full, 1}));  // 16 + 4
  EXPECT_EQ(found->stages[0].time, Seconds(7));
  problem.stages[0].capacity = Bytes(3.99);  // not even the layer at work
  EXPECT_FALSE(allocate_layers(problem));
}

// Three layers of 4 bytes, one in flight. If only the first is recomputed, the two behind it, 8
// bytes, are freed by the time its activations exist again.
TEST(Allocation, RepeatsALayerWhenThoseBehindItAreGone) {
  AllocationProblem problem;
  problem.none = problem.selective = false;
  problem.layers.assign(3, {.time = Seconds(2), .full = Seconds(1), .saved = Bytes(4)});
  problem.stages.assign(1, {.capacity = Bytes(8)});
  const auto repeated = [&problem] {
    return allocate_layers(problem)->stages[0].recompute.full_layers;
  };
  EXPECT_EQ(repeated(), 1);
  problem.stages[0].capacity = Bytes(7.99);
  EXPECT_EQ(repeated(), 2);
  // In three chunks of one layer, no layer lies behind another: 8 + 4, 4 + 4.
  problem.stages[0].chunks = 3;
  problem.stages[0].capacity = Bytes(11.99);
  EXPECT_EQ(repeated(), 2);
  // Nor are layers freed where weight gradients are put off.
  problem.stages[0].chunks = 0;
  EXPECT_EQ(repeated(), 2);
}

// ---- The cost model's problem --------------------------------------------------------------

Plan legal(const PreparedJob& job, const PlanRequest& request) {
  return make_plan(request, job.job.model, job.job.cluster, job.job.training).value();
}

// Expects the estimate's time and memory of stage `j` with layers first … end − 1 and this
// recomputation.
void expect_the_estimates(AllocationProblem problem, const StageEstimate& priced, int j, int first,
                          int end, Recompute recompute) {
  const auto time_within = [&](Bytes capacity) {
    problem.stages[at(j)].capacity = capacity;
    return stage_time(problem, j, first, end, recompute.mode, recompute.full_layers);
  };
  const Bytes peak = priced.memory.at_peak.allocated();
  const double expected = (priced.passes.total() - priced.exposed.data_parallel).value();
  EXPECT_NEAR(time_within(peak * (1 + 1e-9)), expected, 1e-9 * expected);
  EXPECT_EQ(time_within(peak * (1 - 1e-9)), kInfinity);
}

// Eight layers a stage.
TEST(AllocationProblem, GivesTheStageTimesAndTheMemoryOfTheEstimate) {
  const PreparedJob job = prepare(llama_8b_job(1));
  for (const int zero_stage : {0, 3}) {
    PlanRequest request{.pipeline_parallel = 4, .zero_stage = zero_stage};
    const auto problem = allocation_problem(job, legal(job, request));
    ASSERT_TRUE(problem);
    for (const int repeated : {0, 1, 5, 6, 7, 8}) {
      SCOPED_TRACE(repeated);
      if (repeated > 0) request.recompute = {RecomputeMode::full, repeated};
      const Estimate priced = estimate(job, legal(job, request));
      int first = 0;
      for (int j = 0; j < 4; ++j) {
        const int end = first + priced.held[at(j)].layers;
        expect_the_estimates(*problem, priced.stages[at(j)], j, first, end, request.recompute);
        first = end;
      }
    }
  }
}

TEST(AllocationProblem, IsNotAskedOfTwoWaysOrOfUnlikeLayersInChunks) {
  const PreparedJob job = prepare(llama_8b_job(1));
  EXPECT_FALSE(
      allocation_problem(job, legal(job, {.pipeline_parallel = 4, .schedule = "dualpipe"})));
  Job mixed = llama_8b_job(1);
  mixed.model.experts = 8;
  mixed.model.experts_per_token = 2;
  mixed.model.dense_layers = 1;
  const PreparedJob unlike = prepare(mixed);
  EXPECT_FALSE(
      allocation_problem(unlike, legal(unlike, {.pipeline_parallel = 4, .virtual_stages = 2})));
}

// Layers of one kind are the same wherever they lie, so the chunks of a stage count together.
TEST(AllocationProblem, OfChunksGivesTheStageTimesAndTheMemoryOfTheEstimate) {
  Job raw = llama_8b_job(1);
  const PlanRequest loop{.pipeline_parallel = 4, .virtual_stages = 2};
  const PlanRequest vee{.pipeline_parallel = 4, .virtual_stages = 2, .schedule = "zb-v"};
  // Under zb-v both ends of the network lie on one stage, where they may share one table.
  for (const auto& [request, tied] : {std::pair(loop, false), {vee, false}, {vee, true}}) {
    raw.model.tied_embeddings = tied;
    const PreparedJob job = prepare(raw);
    const Plan plan = legal(job, request);
    const auto problem = allocation_problem(job, plan);
    ASSERT_TRUE(problem);
    const Estimate priced = estimate(job, plan);
    std::vector<int> layers_of_stages;
    for (int j = 0; j < 4; ++j) {
      const int layers = priced.held[at(j)].layers;
      expect_the_estimates(*problem, priced.stages[at(j)], j, 0, layers, {});
      layers_of_stages.push_back(layers);
    }
    EXPECT_EQ(layers_of_chunks(plan, layers_of_stages), std::vector<int>(8, 4));  // 32 on 8 chunks
    layers_of_stages[0] = 7;
    layers_of_stages[3] = 9;
    const std::vector<int> uneven = layers_of_chunks(plan, layers_of_stages);
    EXPECT_EQ(std::accumulate(uneven.begin(), uneven.end(), 0), 32);
    EXPECT_EQ(uneven[0], 3);  // beside the embedding
  }
}

// The value for a stage without layers has no effect, so it is chosen such that nothing stands out
// in the list.
TEST(RequestWith, TellsAStageWithoutLayersWhatItsNeighbourDoes) {
  const Job job = llama_8b_job(1);
  const Plan plan =
      make_plan({.pipeline_parallel = 4}, job.model, job.cluster, job.training).value();
  const Recompute selective{RecomputeMode::selective, 0}, some{RecomputeMode::full, 2};
  const PlanRequest request = request_with(
      plan,
      {.stages = {{0, {}, {}}, {16, selective, {}}, {16, some, {}}, {0, {}, {}}}, .step = {}});
  EXPECT_EQ(request.recompute_per_stage,
            std::vector<Recompute>({selective, selective, some, some}));
  const auto listed = make_plan(request, job.model, job.cluster, job.training);
  ASSERT_TRUE(listed) << listed.error().message;
  const PlanRequest alike = request_with(
      plan, {.stages = {{0, {}, {}}, {16, some, {}}, {16, some, {}}, {0, {}, {}}}, .step = {}});
  const Plan one = make_plan(alike, job.model, job.cluster, job.training).value();
  EXPECT_TRUE(one.recompute_per_stage.empty());
  EXPECT_EQ(one.recompute, some);
  // The same list with `none` for the stages without layers.
  PlanRequest spelled = alike;
  spelled.recompute_per_stage = {{}, some, some, {}};
  const PreparedJob prepared = prepare(job);
  const Plan other = make_plan(spelled, job.model, job.cluster, job.training).value();
  const Estimate a = estimate(prepared, one), b = estimate(prepared, other);
  EXPECT_EQ(a.step_time, b.step_time);
  EXPECT_EQ(a.peak_memory, b.peak_memory);
  EXPECT_DOUBLE_EQ(a.hfu, b.hfu);
}

// ---- A vision tower before a language model -------------------------------------------------

struct Towers {
  int hidden = 0, heads = 0;  // of the vision tower
  int vision_layers = 0, text_layers = 0;
  int stages = 0;
};

constexpr int kImages = 8;  // of each sequence

// One device per stage.
Job text_job(const Towers& towers) {
  Job job = llama_8b_job(1);
  job.model.layers = towers.text_layers;
  job.cluster.devices_per_node = job.cluster.nvlink_domain = towers.stages;
  job.cluster.inter = {};
  return job;
}

// A vision transformer (Dosovitskiy et al. 2021) of 1,024 patches per image. Its job has as many
// micro-batches as that of the text.
Job vision_job(const Towers& towers) {
  Job job = text_job(towers);
  job.model = {.name = "vision",
               .layers = towers.vision_layers,
               .hidden_size = towers.hidden,
               .attention_heads = towers.heads,
               .kv_heads = towers.heads,
               .head_dim = towers.hidden / towers.heads,
               .ffn_size = 4 * towers.hidden,
               .vocabulary = 588,  // a patch of 14 × 14 pixels in three colours
               .gated_mlp = false,
               .norm = Norm::layer_norm,
               .biases = true,
               .learned_positions = true};
  job.training.sequence_length = 1024;
  job.training.global_batch *= kImages;
  return job;
}

// The additional time of a layer in which every patch sees every other. The kernels here are
// causal, and one of √2 times the length has as many scores.
Seconds other_half_of_attention(const Job& job, const Plan& plan) {
  const OperatorList operators =
      layer_operators(job.model, job.training, layer_shard(plan), LayerKind{});
  const auto core = std::ranges::find(operators, OperatorKind::attention_core, &Operator::kind);
  const auto time = [&](const Operator& op) {
    const OperatorTime passes = operator_time(job.cluster.device, job.training, op);
    return passes.forward + passes.input_gradient + passes.weight_gradient;
  };
  Operator all = *core;
  all.attention.queries *= std::sqrt(2);
  all.attention.keys *= std::sqrt(2);
  return time(all) - time(*core);
}

// The layers of the tower, then those of the text. The first text layer includes the token table
// (with its activations on the first stage). Stages are those of the text, whose sends are larger.
// The tower's own embedding (588 rows) is left out.
AllocationProblem problem_of_towers(const Towers& towers, Bytes capacity) {
  const PreparedJob text = prepare(text_job(towers));
  const PreparedJob vision = prepare(vision_job(towers));
  PlanRequest request{.pipeline_parallel = towers.stages};
  const Plan of_text = legal(text, request);
  request.micro_batch = kImages;
  const Plan of_vision = legal(vision, request);
  EXPECT_EQ(of_vision.microbatches, of_text.microbatches);
  AllocationProblem problem = *allocation_problem(text, of_text);
  AllocationProblem tower = *allocation_problem(vision, of_vision);
  AllocatedLayer& first = problem.layers.front();
  AllocatedStage& front = problem.stages.front();
  const AllocatedStage& plain = problem.stages[1];
  first.time += front.time - plain.time;
  first.states += front.fixed - plain.fixed;
  front.time = plain.time;
  front.fixed = plain.fixed;
  for (AllocatedLayer& layer : tower.layers) {
    layer.time += other_half_of_attention(vision.job, of_vision);
  }
  problem.layers.insert(problem.layers.begin(), tower.layers.begin(), tower.layers.end());
  for (AllocatedStage& stage : problem.stages) stage.capacity = capacity;
  return problem;
}

// As even a split as possible, with the larger stages first and the best recomputation of each.
double even_split(const AllocationProblem& problem) {
  const int stages = static_cast<int>(problem.stages.size());
  const int layers = static_cast<int>(problem.layers.size());
  double longest = 0, sum = 0;
  for (int j = 0, first = 0; j < stages; ++j) {
    const int end = first + layers / stages + (j < layers % stages ? 1 : 0);
    const std::vector<double> times = all_times(problem, j, first, end);
    const double time = *std::ranges::min_element(times);
    if (time == kInfinity) return kInfinity;
    longest = std::max(longest, time);
    sum += time;
    first = end;
  }
  return problem.microbatches * longest + problem.fill * (sum - longest);
}

// ViT-H (1280), ViT-bigG (1664) and InternViT-6B (3200), in front of layers of Llama-3.1-8B.
TEST(Allocation, OfAVisionTowerEqualsBruteForceAndBeatsAnEvenSplit) {
  int fitting = 0, tight = 0, recomputing = 0;
  double most = 0;
  for (const Towers& towers :
       {Towers{1280, 16, 2, 4, 3}, Towers{1280, 16, 6, 4, 4}, Towers{1664, 16, 5, 5, 4},
        Towers{3200, 25, 4, 6, 4}, Towers{3200, 25, 3, 2, 3}}) {
    for (const double gib : {14.0, 16.0, 18.0, 20.0, 22.0, 26.0, 70.0}) {
      const AllocationProblem problem = problem_of_towers(towers, Bytes(gib * 1073741824));
      const auto found = expect_brute_force(problem);
      ASSERT_FALSE(testing::Test::HasFailure()) << towers.hidden << " in " << gib;
      if (!found) continue;
      ++fitting;
      const double best = found->step.value();
      const double even = even_split(problem);
      EXPECT_LE(best, even * (1 + 1e-9));
      if (even == kInfinity) ++tight;
      if (even < kInfinity) most = std::max(most, 1 - best / even);
      for (const StageAllocation& stage : found->stages) {
        recomputing += stage.recompute.mode != RecomputeMode::none ? 1 : 0;
      }
    }
  }
  EXPECT_GT(fitting, 15);
  EXPECT_GT(most, 0.1);
  EXPECT_GT(tight, 0);
  EXPECT_GT(recomputing, 0);
  std::printf("%d fit, of %d no even split does; at most %.1f %% less than it\n", fitting, tight,
              100 * most);
}

}  // namespace
}  // namespace trainyard
