// Multi-token prediction: the simulation, which plays the program's operations, compared with the
// analytic estimate, which adds up the costs of units; and what the last stage holds, counted by
// hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "model/cost/sharding/stage_parameters.h"
#include "simulator/step.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

// Eight layers on 16 H100.
PreparedJob with_mtp(Transformer model, int mtp_layers) {
  PreparedJob job = llama_8b_on_h100(2, 64);
  model.layers = 8;
  model.mtp_layers = mtp_layers;
  job.job.model = std::move(model);
  job.job.training.sequence_length = 4096;
  return prepare(job.job);
}

struct Asked {
  std::string name;
  PlanRequest request;
};

std::vector<Asked> asked(bool experts) {
  std::vector<Asked> all;
  const auto ask = [&](std::string name, PlanRequest request) {
    if (!request.zero_stage) request.zero_stage = 1;
    if (experts) request.expert_parallel = 2;
    all.push_back({std::move(name), std::move(request)});
  };
  const PlanRequest sharded{.tensor_parallel = 4, .sequence_parallel = true};
  ask("one stage", {});
  ask("TP and SP", sharded);
  ask("four stages", {.pipeline_parallel = 4});
  ask("its own stage", {.pipeline_parallel = 4, .layers_per_stage = {3, 3, 2, 0}});
  PlanRequest both = sharded;
  both.pipeline_parallel = 2;
  ask("TP, SP and two stages", both);
  ask("two chunks", {.pipeline_parallel = 2, .virtual_stages = 2, .schedule = "interleaved-1f1b"});
  ask("four chunks", {.pipeline_parallel = 2, .virtual_stages = 4, .schedule = "interleaved-1f1b"});
  ask("repeated", {.pipeline_parallel = 2, .recompute = {RecomputeMode::full, 0}});
  for (const char* schedule : {"gpipe", "zb-h1", "zb-v", "dualpipe"}) {
    ask(schedule, {.pipeline_parallel = 2, .schedule = schedule});
  }
  for (const int zero : {0, 2, 3}) {
    ask(fmt::format("ZeRO-{}", zero), {.zero_stage = zero});
    ask(fmt::format("ZeRO-{}, two stages", zero), {.pipeline_parallel = 2, .zero_stage = zero});
  }
  if (!experts) ask("TP", {.tensor_parallel = 4, .sequence_parallel = false});
  ask("context", {.context_parallel = 2});
  ask("activations away",
      {.pipeline_parallel = 2, .zero_stage = 1, .offload = {.activations = OffloadTarget::host}});
  return all;
}

// The mean must meet the aim that agreement_law_test.cpp has for most schedules. Any single plan
// must be within about its p95: an MTP layer on a last stage of its own is 5.1 % too slow in the
// estimate.
void expect_agreement(const Transformer& model, int mtp_layers) {
  constexpr double kMost = 0.052;
  const PreparedJob job = with_mtp(model, mtp_layers);
  double sum = 0;
  const std::vector<Asked> all = asked(model.experts > 0);
  for (const auto& [name, request] : all) {
    const Plan plan = legal_plan(job, request);
    const Estimate priced = estimate(job, plan);
    const auto played = simulate(job, plan);
    ASSERT_TRUE(played) << name << ": " << played.error().message;
    const double error = played->step_time / priced.step_time - 1;
    EXPECT_LT(std::abs(error), kMost) << name;
    sum += std::abs(error);
  }
  EXPECT_LT(sum / static_cast<double>(all.size()), 0.02);
}

TEST(MultiTokenPrediction, OfADenseNetworkIsPlayedAsItIsPriced) { expect_agreement(llama_8b(), 1); }

TEST(MultiTokenPrediction, OfTwoTokensIsPlayedAsItIsPriced) { expect_agreement(llama_8b(), 2); }

TEST(MultiTokenPrediction, OfExpertsIsPlayedAsItIsPriced) { expect_agreement(mixtral_8x7b(), 1); }

TEST(MultiTokenPrediction, WithATiedHeadIsPlayedAsItIsPriced) {
  Transformer model = llama_8b();
  model.tied_embeddings = true;
  expect_agreement(model, 1);
}

// Llama-3.1-8B: a layer has 218,112,000 parameters, a matrix of the vocabulary 128256 · 4096.
TEST(MultiTokenPrediction, LiesOnTheLastStageWithACopyOfTheEmbedding) {
  const PreparedJob job = with_mtp(llama_8b(), 1);
  std::vector<StageParameters> stages;
  stage_parameters(job, legal_plan(job, {.pipeline_parallel = 4}), stages);
  constexpr double kLayer = 218'112'000, kMatrix = 128256.0 * 4096;
  constexpr double kMtp = kLayer + 2.0 * 4096 * 4096 + 2 * 4096;
  EXPECT_EQ(stages[1].dense, 2 * kLayer);
  EXPECT_EQ(stages[0].dense, 2 * kLayer + kMatrix);
  EXPECT_EQ(stages[3].dense, 2 * kLayer + kMtp + 2 * kMatrix + 2 * 4096);
  EXPECT_EQ(stages[3].tied_embedding, kMatrix);
  EXPECT_EQ(stages[3].layers, 3);
  stage_parameters(job, legal_plan(job, {}), stages);
  EXPECT_EQ(stages[0].dense, job.parameters);
}

// The logits of 4096 tokens, predicted twice: each waits as 4 bytes for its gradient of 2.
TEST(MultiTokenPrediction, KeepsTheLogitsOfEveryTokenPredicted) {
  const auto logits = [](int mtp_layers) {
    const PreparedJob job = with_mtp(llama_8b(), mtp_layers);
    const Plan plan = legal_plan(job, {.pipeline_parallel = 4, .layers_per_stage = {3, 3, 2, 0}});
    return estimate(job, plan).stages[3].memory.at_peak.logits;
  };
  EXPECT_GT(logits(0), Bytes(0));
  EXPECT_DOUBLE_EQ(logits(1) / logits(0), (2 * 4 + 2) / 6.0);
  EXPECT_DOUBLE_EQ(logits(3) / logits(0), (4 * 4 + 2) / 6.0);
}

}  // namespace
}  // namespace trainyard
