// Executes every kind of plan on up to eight ranks and compares it number by number with the
// network on one rank. The program is started once under mpirun: every rank runs every test, and
// the expectations hold on all ranks. No test may return before its last collective.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "model/schedule/schedule.h"
#include "tests/executor/executed_plan.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

class Ranks : public testing::Environment {
 public:
  void SetUp() override { world(); }
};
const auto* const kRanks = testing::AddGlobalTestEnvironment(new Ranks);

// ---- The three plans that must hold ----------------------------------------------------------

TEST(ExecutedPlan, OfInterleavedStagesWithShardedStatesIsTheUnshardedNetwork) {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.pipeline_parallel = 2;
  request.data_parallel = 2;
  request.zero_stage = 1;
  request.virtual_stages = 2;
  expect_right(tiny_llama(false), request, "t 2 p 2 D 2 zero 1 interleaved");
  expect_right(tiny_gpt(true), request, "the same, tied, with Adam", training_in("fp32", "adam"));
}

TEST(ExecutedPlan, OfExpertsOnFourRanksIsTheUnshardedNetwork) {
  PlanRequest request;
  request.data_parallel = 4;
  request.expert_parallel = 4;
  expect_right(tiny_moe(), request, "e 4");
  request.data_parallel = 8;
  expect_right(tiny_moe(), request, "e 4 D 8", training_in("fp32", "adamw"));
}

TEST(ExecutedPlan, OfShardedWeightsOverContextIsTheUnshardedNetwork) {
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    PlanRequest request;
    request.context_parallel = 2;
    request.context_parallel_algorithm = algorithm;
    request.data_parallel = 2;
    request.zero_stage = 3;
    expect_right(tiny_llama(false), request,
                 fmt::format("c 2 zero 3 {}", static_cast<int>(algorithm)));
  }
}

// ---- Every degree alone and in pairs ------------------------------------------------------------

enum class Degree { tensor, pipeline, data, context, expert, expert_tensor };
constexpr std::array kAll = {Degree::tensor,  Degree::pipeline, Degree::data,
                             Degree::context, Degree::expert,   Degree::expert_tensor};

void raise(PlanRequest& request, Degree degree) {
  switch (degree) {
    case Degree::tensor:
      request.tensor_parallel = 2;
      request.sequence_parallel = true;
      break;
    case Degree::pipeline:
      request.pipeline_parallel = 2;
      break;
    case Degree::data:
      request.data_parallel = 2;
      break;
    case Degree::context:
      request.context_parallel = 2;
      break;
    case Degree::expert:
      request.data_parallel = 2;
      request.expert_parallel = 2;
      break;
    case Degree::expert_tensor:
      request.tensor_parallel = 2;
      request.sequence_parallel = true;
      request.expert_tensor_parallel = 2;
      break;
  }
}

TEST(ExecutedPlan, OfEveryDegreeAloneAndInPairsIsTheUnshardedNetwork) {
  for (const Degree one : kAll) {
    for (const Degree other : kAll) {
      if (other < one) continue;
      PlanRequest request;
      request.data_parallel = 1;
      raise(request, one);
      raise(request, other);
      expect_right(
          tiny_moe(), request,
          fmt::format("degrees {} and {}", static_cast<int>(one), static_cast<int>(other)));
    }
  }
}

TEST(ExecutedPlan, OfFourAndEightRanksInARowIsTheUnshardedNetwork) {
  for (const int ranks : {4, 8}) {
    PlanRequest data;
    data.data_parallel = ranks;
    expect_right(tiny_gpt(false), data, fmt::format("D {}", ranks));
    PlanRequest pipeline;
    pipeline.data_parallel = 1;
    pipeline.pipeline_parallel = 4;
    pipeline.data_parallel = ranks / 4;
    expect_right(tiny_gpt(true), pipeline, fmt::format("p 4 D {}", ranks / 4));
    PlanRequest tensor;
    tensor.tensor_parallel = 4;
    tensor.data_parallel = ranks / 4;
    expect_right(tiny_llama(true), tensor, fmt::format("t 4 D {}", ranks / 4));
  }
}

// ---- Every schedule, every stage of sharding ----------------------------------------------------

TEST(ExecutedPlan, UnderEveryScheduleIsTheUnshardedNetwork) {
  for (const Schedule* schedule : schedules()) {
    for (const int zero : {0, 2}) {
      PlanRequest request;
      request.schedule = schedule->name;
      request.pipeline_parallel = 2;
      request.virtual_stages = schedule->needs_chunks ? 2 : 1;
      request.data_parallel = 2;
      request.zero_stage = zero;
      expect_right(zero == 0 ? tiny_llama(true) : tiny_gpt(false), request,
                   fmt::format("{} zero {}", schedule->name, zero));
    }
  }
}

TEST(ExecutedPlan, OfEveryStageOfShardingIsTheUnshardedNetwork) {
  for (const int zero : {0, 1, 2, 3}) {
    for (const bool overlapped : {false, true}) {
      PlanRequest request;
      request.data_parallel = 4;
      request.zero_stage = zero;
      request.sharding_group = overlapped ? 2 : 4;
      request.overlap.data_parallel = overlapped;
      expect_right(tiny_gpt(overlapped), request, fmt::format("zero {} {}", zero, overlapped),
                   training_in("fp32", overlapped ? "adam" : "sgd"));
    }
  }
}

// ---- Experts, uneven stages, what stacks and networks add ---------------------------------------

TEST(ExecutedPlan, DropsTheTokensThatTheUnshardedNetworkDrops) {
  for (const auto& [tensor, data, expert, micro_batch] :
       {std::tuple{1, 4, 2, 1}, std::tuple{2, 2, 2, 1}, std::tuple{2, 4, 4, 1},
        std::tuple{1, 2, 2, 2}, std::tuple{2, 2, 4, 2}}) {
    PlanRequest request;
    request.tensor_parallel = tensor;
    request.sequence_parallel = tensor > 1;
    request.data_parallel = data;
    request.expert_parallel = expert;
    request.micro_batch = micro_batch;
    request.capacity_factor = 0.75;
    expect_right(tiny_moe(), request,
                 fmt::format("dropping t {} D {} e {} b {}", tensor, data, expert, micro_batch));
  }
}

TEST(ExecutedPlan, OfUnevenStagesIsTheUnshardedNetwork) {
  for (const std::vector<int>& layers : {std::vector<int>{3, 1}, {1, 3}, {4, 0}, {0, 4}}) {
    PlanRequest request;
    request.pipeline_parallel = 2;
    request.data_parallel = 2;
    request.layers_per_stage = layers;
    expect_right(tiny_llama(true), request, fmt::format("layers {}", layers.front()));
  }
}

TEST(ExecutedPlan, ThatRepeatsForwardPassesIsTheUnshardedNetwork) {
  for (const int zero : {0, 3}) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = zero == 0;
    request.data_parallel = 2;
    request.zero_stage = zero;
    request.recompute.mode = RecomputeMode::full;
    Training training = training_in();
    training.stack.dropout = true;
    expect_right(tiny_gpt(false), request, fmt::format("recompute zero {}", zero), training);
  }
}

TEST(ExecutedPlan, WithActivationsOrStatesOnTheHostIsTheUnshardedNetwork) {
  for (const int zero : {0, 1, 2, 3}) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.pipeline_parallel = zero < 2 ? 2 : 1;
    request.data_parallel = 2;
    request.zero_stage = zero;
    request.offload = {.optimizer = OffloadTarget::host, .activations = OffloadTarget::host};
    expect_right(tiny_llama(zero == 0), request, fmt::format("offload zero {}", zero),
                 training_in(zero == 3 ? "bf16" : "fp32", "adam"));
  }
  PlanRequest experts;
  experts.data_parallel = 4;
  experts.expert_parallel = 2;
  experts.offload.activations = OffloadTarget::host;
  expect_right(tiny_moe(), experts, "activations of experts away");
}

TEST(ExecutedPlan, WithWeightsOrGradientsOnTheHostIsTheUnshardedNetwork) {
  constexpr OffloadTarget kHost = OffloadTarget::host;
  const Offload states = {.parameters = kHost, .gradients = kHost, .optimizer = kHost};
  for (const Offload& offload :
       {Offload{.parameters = kHost}, Offload{.gradients = kHost}, states}) {
    for (const int zero : {0, 1, 2, 3}) {
      PlanRequest request;
      request.tensor_parallel = 2;
      request.sequence_parallel = true;
      request.pipeline_parallel = zero < 2 ? 2 : 1;
      request.data_parallel = zero < 2 ? 2 : 4;
      request.zero_stage = zero;
      request.overlap.data_parallel = zero % 2 == 0;
      request.offload = offload;
      if (zero == 0) request.schedule = "zb-h1";
      expect_right(tiny_llama(zero == 1), request,
                   fmt::format("weights {} gradients {} away, zero {}", offload.parameters == kHost,
                               offload.gradients == kHost, zero),
                   training_in(zero == 3 ? "bf16" : "fp32", "adam"));
    }
  }
  PlanRequest experts;
  experts.data_parallel = 4;
  experts.expert_parallel = 2;
  experts.offload = states;
  expect_right(tiny_moe(), experts, "states of experts away");
}

TEST(ExecutedPlan, ThatRepeatsEverySecondMatmulIsTheUnshardedNetwork) {
  Training training = training_in();
  training.stack.selective = SelectiveRecompute::every_second_matmul;
  for (const bool sequence_parallel : {false, true}) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = sequence_parallel;
    request.data_parallel = 2;
    request.zero_stage = sequence_parallel ? 3 : 1;
    request.recompute.mode = RecomputeMode::selective;
    expect_right(sequence_parallel ? tiny_llama(false) : tiny_gpt(true), request,
                 "every second matmul", training);
  }
  for (const Transformer& model : {tiny_latent(), tiny_moe()}) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.data_parallel = 2;
    request.expert_parallel = model.experts > 0 ? 2 : 1;
    request.recompute.mode = RecomputeMode::selective;
    expect_right(model, request, "every second matmul of experts or latent attention", training);
  }
}

// Every rank recomputes the scores of all keys that its forward pass saw: block by block in a ring,
// gathered, or dealt by Ulysses.
TEST(ExecutedPlan, ThatRepeatsScoresOverContextIsTheUnshardedNetwork) {
  Training training = training_in();
  training.stack.flash_attention = false;
  training.stack.selective = SelectiveRecompute::core_attention;
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    PlanRequest request;
    request.context_parallel = 2;
    request.context_parallel_algorithm = algorithm;
    request.data_parallel = 2;
    request.recompute.mode = RecomputeMode::selective;
    expect_right(tiny_llama(false), request,
                 fmt::format("scores again, c 2 {}", static_cast<int>(algorithm)), training);
  }
}

TEST(ExecutedPlan, OfARingWithScoresInMemoryIsTheUnshardedNetwork) {
  Training training = training_in();
  training.stack.flash_attention = false;
  training.sequence_length = 8;
  for (const bool dropout : {false, true}) {
    training.stack.dropout = dropout;
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.context_parallel = 4;
    request.context_parallel_algorithm = ContextAlgorithm::ring;
    expect_right(tiny_gpt(false), request, fmt::format("unfused ring, dropout {}", dropout),
                 training);
  }
}

TEST(ExecutedPlan, OfLatentAttentionAndSinksIsTheUnshardedNetwork) {
  Transformer sinks = tiny_llama(false);
  sinks.attention_sinks = true;
  sinks.qk_norm = true;
  sinks.sliding_window = 3;
  sinks.full_attention_every = 2;
  for (const Transformer& model : {tiny_latent(), sinks}) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.pipeline_parallel = 2;
    request.data_parallel = 2;
    request.zero_stage = 3;
    request.schedule = "zb-h1";
    expect_right(model, request, "latent attention or sinks");
  }
}

// ---- Multi-token prediction ---------------------------------------------------------------------

Transformer predicting(int further, Transformer model) {
  model.mtp_layers = further;
  return model;
}

PlanRequest on_tensor_ranks(int ranks, bool sequence_parallel) {
  PlanRequest request;
  request.tensor_parallel = ranks;
  request.sequence_parallel = sequence_parallel;
  request.data_parallel = 1;
  return request;
}

TEST(ExecutedPlan, ThatPredictsSeveralTokensOnTensorRanksIsTheUnshardedNetwork) {
  expect_right(predicting(2, tiny_gpt(false)), on_tensor_ranks(4, false), "mtp, t 4");
  expect_right(predicting(1, tiny_llama(true)), on_tensor_ranks(2, true), "mtp, t 2 sp");
  PlanRequest stages = on_tensor_ranks(2, true);
  stages.pipeline_parallel = 2;
  stages.data_parallel = 2;
  stages.zero_stage = 1;
  expect_right(predicting(2, tiny_llama(false)), stages, "mtp, t 2 sp p 2 D 2 zero 1",
               training_in("bf16", "adam"));
  PlanRequest repeated = on_tensor_ranks(2, true);
  repeated.context_parallel = 2;
  repeated.data_parallel = 2;
  repeated.zero_stage = 3;
  repeated.recompute.mode = RecomputeMode::full;
  expect_right(predicting(2, tiny_llama(true)), repeated, "mtp, t 2 sp c 2 D 2 zero 3, repeated");
}

TEST(ExecutedPlan, ThatPredictsSeveralTokensOnStagesIsTheUnshardedNetwork) {
  for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe"}) {
    PlanRequest request;
    request.schedule = schedule;
    request.pipeline_parallel = 2;
    request.virtual_stages = find_schedule(schedule)->needs_chunks ? 2 : 1;
    request.data_parallel = 2;
    request.zero_stage = schedule[0] == 'z' ? 0 : 2;
    expect_right(predicting(2, tiny_llama(schedule[0] == 'i')), request,
                 fmt::format("mtp, {}", schedule));
  }
  PlanRequest apart;
  apart.pipeline_parallel = 2;
  apart.data_parallel = 1;
  apart.layers_per_stage = {4, 0};
  apart.offload = {.optimizer = OffloadTarget::host, .activations = OffloadTarget::host};
  expect_right(predicting(1, tiny_llama(false)), apart, "mtp, 4 + 0, states away");
}

TEST(ExecutedPlan, ThatPredictsSeveralTokensOfExpertsIsTheUnshardedNetwork) {
  PlanRequest request = on_tensor_ranks(2, true);
  request.pipeline_parallel = 2;
  request.data_parallel = 2;
  request.expert_parallel = 2;
  expect_right(predicting(1, tiny_moe()), request, "mtp, t 2 sp p 2 e 2",
               training_in("fp32", "adam"));
}

TEST(ExecutedPlan, ThatPredictsSeveralTokensInEightBitsIsTheUnshardedNetwork) {
  Transformer model = predicting(1, tiny_llama(false));
  model.hidden_size = 64;
  model.head_dim = 32;
  model.ffn_size = 64;
  for (const char* recipe : {"fp8", "mxfp8"}) {
    Training training = training_in(recipe, "adam");
    for (const bool quantised : {false, true}) {
      training.stack.quantised_gathers = quantised;
      expect_right(model, on_tensor_ranks(2, true),
                   fmt::format("mtp, {}, gathered in 8 bits {}", recipe, quantised), training);
    }
    expect_right(model, on_tensor_ranks(2, false), fmt::format("mtp, {}", recipe), training);
  }
}

TEST(ExecutedPlan, InBf16IsWithinItsToleranceOfTheUnshardedNetwork) {
  for (const auto& [tensor, pipeline, data] :
       {std::tuple{2, 1, 1}, std::tuple{1, 2, 2}, std::tuple{2, 2, 2}}) {
    PlanRequest request;
    request.tensor_parallel = tensor;
    request.pipeline_parallel = pipeline;
    request.data_parallel = data;
    expect_right(tiny_llama(false), request,
                 fmt::format("bf16 t {} p {} D {}", tensor, pipeline, data),
                 training_in("bf16", "adam"));
  }
}

// Stacks that keep weights only in fp32: whole on a rank, or in parts from which passes gather
// casts.
TEST(ExecutedPlan, WithMasterWeightsOnlyIsWithinItsToleranceOfTheUnshardedNetwork) {
  for (const int data : {1, 2, 4}) {
    Training training = training_in("bf16", "adam");
    training.stack.keeps_weight_copy = false;
    PlanRequest request;
    request.tensor_parallel = 2;
    request.data_parallel = data;
    request.zero_stage = 3;
    request.sequence_parallel = true;
    request.expert_parallel = data;
    expect_right(tiny_moe(), request, fmt::format("master weights D {}", data), training);
  }
}

TEST(ExecutedPlan, InFp16IsWithinItsToleranceOfTheUnshardedNetwork) {
  for (const auto& [tensor, pipeline, data, zero] :
       {std::tuple{2, 1, 1, 0}, std::tuple{1, 2, 2, 1}, std::tuple{2, 2, 2, 0},
        std::tuple{1, 1, 4, 3}}) {
    PlanRequest request;
    request.tensor_parallel = tensor;
    request.pipeline_parallel = pipeline;
    request.data_parallel = data;
    request.zero_stage = zero;
    expect_right(tensor == 2 ? tiny_llama(false) : tiny_gpt(true), request,
                 fmt::format("fp16 t {} p {} D {} zero {}", tensor, pipeline, data, zero),
                 training_in("fp16", "adam"));
  }
}

// The loss scale starts at 2^20, so gradients overflow in fp16 and the first steps are skipped, on
// every rank as on one.
TEST(ExecutedPlan, ThatLeavesOutStepsThatOverflowIsTheUnshardedNetwork) {
  for (const int zero : {0, 1, 3}) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.pipeline_parallel = zero == 0 ? 2 : 1;
    request.data_parallel = 2;
    request.zero_stage = zero;
    Setting setting = tiny_setting(tiny_llama(zero == 1), training_in("fp16", "adam"), request);
    setting.descent.loss_scale = 0x1p20;
    EXPECT_GT(expect_right(setting, fmt::format("overflowing, zero {}", zero), 10).left_out, 0);
  }
}

// FSDP2 under a pipeline: gradients are whole and are reduced after each chunk's last backward
// pass; those that have gone to the host by then come back for it.
TEST(ExecutedPlan, UnderNoSyncIsTheUnshardedNetwork) {
  Training training = training_in("fp32", "adam");
  training.stack.pipeline_no_sync = true;
  training.stack.keeps_weight_copy = false;
  for (const char* schedule : {"gpipe", "1f1b", "interleaved-1f1b", "zb-v"}) {
    PlanRequest request;
    request.schedule = schedule;
    request.pipeline_parallel = 2;
    request.virtual_stages = find_schedule(schedule)->needs_chunks ? 2 : 1;
    request.data_parallel = 2;
    request.zero_stage = schedule[0] == 'z' ? 3 : 2;
    request.overlap.data_parallel = true;
    expect_right(tiny_llama(false), request, fmt::format("no_sync, {}", schedule), training);
    request.offload.gradients = OffloadTarget::host;
    expect_right(tiny_llama(false), request, fmt::format("no_sync, away, {}", schedule), training);
  }
}

// A weight of one column is no bias: attention heads of one element, one of them on each rank.
TEST(ExecutedPlan, WithProductsOverOneElementIsTheUnshardedNetwork) {
  for (const bool biases : {false, true}) {
    Transformer model = tiny_llama(false);
    model.attention_heads = model.kv_heads = 2;
    model.head_dim = 1;
    model.biases = biases;
    PlanRequest request;
    request.tensor_parallel = 2;
    expect_right(model, request, biases ? "one element, biases" : "one element",
                 training_in("fp32", "adam"));
  }
}

// DTensor's column-parallel GEMMs: the weight gradient reads the input that was gathered for the
// forward pass.
TEST(ExecutedPlan, ThatKeepsGatheredInputsIsTheUnshardedNetwork) {
  Training training = training_in("fp32", "adam");
  training.stack.copies_sharded_sequences = true;
  training.stack.keeps_gathered_inputs = true;
  training.stack.selective = SelectiveRecompute::every_second_matmul;
  using enum RecomputeMode;
  for (const RecomputeMode mode : {none, selective, full}) {
    for (const Transformer& model : {tiny_llama(false), tiny_latent(), tiny_moe()}) {
      PlanRequest request;
      request.tensor_parallel = 2;
      request.sequence_parallel = true;
      request.data_parallel = 2;
      request.zero_stage = model.experts > 0 ? 0 : 3;
      request.recompute = {mode, 0};
      expect_right(model, request, fmt::format("gathered {}", static_cast<int>(mode)), training);
    }
  }
}

// torchtitan's copies beside gathers and scatters, together with its recomputation.
TEST(ExecutedPlan, WithCopiesBesideCollectivesIsTheUnshardedNetwork) {
  Training training = training_in("fp32", "adam");
  training.stack.copies_sharded_sequences = true;
  training.stack.selective = SelectiveRecompute::every_second_matmul;
  for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::selective}) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.data_parallel = 2;
    request.zero_stage = 3;
    request.recompute = {mode, 0};
    expect_right(tiny_llama(false), request, fmt::format("copies {}", static_cast<int>(mode)),
                 training);
  }
}

TEST(ExecutedPlan, InEightBitsIsWithinItsToleranceOfTheUnshardedNetwork) {
  // A GPU needs rows of whole blocks on every rank.
  Transformer blocks = tiny_llama(false);
  blocks.hidden_size = 64;
  blocks.head_dim = 32;
  blocks.ffn_size = 64;
  for (const char* recipe : {"fp8", "mxfp8"}) {
    const Transformer model = recipe == std::string_view("fp8") ? tiny_llama(false) : blocks;
    for (const auto& [tensor, pipeline, data] :
         {std::tuple{2, 1, 1}, std::tuple{1, 2, 2}, std::tuple{2, 2, 2}}) {
      PlanRequest request;
      request.tensor_parallel = tensor;
      request.pipeline_parallel = pipeline;
      request.data_parallel = data;
      expect_right(model, request, fmt::format("{} t {} p {} D {}", recipe, tensor, pipeline, data),
                   training_in(recipe, "adam"));
    }
    PlanRequest gathered;
    gathered.tensor_parallel = 2;
    gathered.sequence_parallel = true;
    gathered.data_parallel = 1;
    Training training = training_in(recipe, "adam");
    training.stack.quantised_gathers = true;
    for (const bool copies : {false, true}) {
      training.stack.copies_sharded_sequences = copies;
      expect_right(model, gathered, fmt::format("{} gathered in 8 bits, {}", recipe, copies),
                   training);
    }
  }
}

TEST(ExecutedPlan, OnAtLeastSixtyPlansWasCompared) { EXPECT_GE(verified, random_cases(60)); }

// ---- Fifty steps on one batch -------------------------------------------------------------------

class Nobody final : public Watch {
  void begins(std::int64_t, const IssuedOperation&) override {}
};

void expect_overfits(const Transformer& model, const PlanRequest& request) {
  Setting setting = tiny_setting(model, training_in("fp32", "adam"), request);
  setting.descent = {.learning_rate = 1e-2};
  const RunPlan plan{.warmup = 0, .steps = 50, .same_batch = true};
  Nobody nobody;
  const auto alone = run_unsharded(setting, {50, true}, nobody);
  const ExecutedRun ran = run(setting, plan);
  EXPECT_EQ(ran.error, "");
  ASSERT_TRUE(alone);
  EXPECT_LT(alone->losses.back(), 0.5 * alone->losses.front());
  if (world().rank() >= setting.plan.devices()) return;
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(ran.losses[i], alone->losses[i], 1e-3 * alone->losses[i]) << "step " << i;
  }
}

TEST(FiftyStepsOnOneBatch, LearnItAlikeOnEveryPlan) {
  PlanRequest dense;
  dense.tensor_parallel = 2;
  dense.pipeline_parallel = 2;
  dense.data_parallel = 2;
  dense.zero_stage = 1;
  expect_overfits(tiny_llama(false), dense);
  PlanRequest experts;
  experts.data_parallel = 4;
  experts.expert_parallel = 4;
  experts.zero_stage = 2;
  expect_overfits(tiny_moe(), experts);
}

}  // namespace
}  // namespace trainyard
