// Multi-token prediction: the program of one rank has the gradients of its loss, and every sharded
// program computes what that program computes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "executor/holdings.h"
#include "model/program/lower.h"
#include "model/schedule/schedule.h"
#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

Transformer predicting(int further, Transformer model) {
  model.mtp_layers = further;
  return model;
}

TEST(MultiTokenProgram, OfOneRankHasTheGradientsOfItsLoss) {
  expect_gradients_of_loss(tiny_setting(predicting(1, tiny_llama(false)), unsharded(4)));
  expect_gradients_of_loss(tiny_setting(predicting(2, tiny_llama(true)), unsharded(4)));
  expect_gradients_of_loss(tiny_setting(predicting(2, tiny_gpt(false)), unsharded(4)));
  expect_gradients_of_loss(tiny_setting(predicting(1, tiny_moe()), unsharded(4)));
}

// At depth d, the embeddings are those of the tokens d positions ahead, and the labels those of one
// position more. The file's token at position i is i.
TEST(MultiTokenProgram, LooksUpAndPredictsTheTokensBehindEachPosition) {
  Setting setting = tiny_setting(predicting(2, tiny_llama(false)), unsharded(1));
  setting.training.sequence_length = 4;
  setting.tokens = std::make_shared<const std::vector<std::uint32_t>>(
      std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const Holdings holdings(setting, *program, layout, 0);
  std::multimap<std::string_view, double>
      last;  // of each buffer, at the end of the second sequence
  for (const ProgramBuffer& buffer : program->buffers) {
    if (buffer.role != BufferRole::data) continue;
    last.emplace(buffer.name, holdings.tokens(buffer, 1, 0).back());
  }
  const std::multimap<std::string_view, double> expected = {
      {"tokens", 7}, {"labels", 10}, {"labels", 9}, {"labels", 8}, {"tokens", 8}, {"tokens", 9}};
  EXPECT_EQ(last, expected);
}

// Each of D further tokens adds λ/D of its own loss.
TEST(MultiTokenProgram, AddsATenthOfTheFurtherLossesMean) {
  const auto loss = [](int further) {
    const Setting setting = tiny_setting(predicting(further, tiny_llama(false)), unsharded(4));
    return run_lowered(setting).loss;
  };
  // Guessing one of 13 equally likely words costs ln 13, and these weights have learned nothing.
  EXPECT_NEAR(loss(1) - loss(0), 0.1 * std::log(13.0), 0.02);
  EXPECT_NEAR(loss(2) - loss(0), 0.1 * std::log(13.0), 0.02);
}

void expect_equivalents(const PlanRequest& request, const std::string& what,
                        const Training& training = tiny_training()) {
  std::uint64_t seed = 0;
  for (const int further : {1, 2}) {
    for (const bool tied : {false, true}) {
      expect_equivalent(tiny_setting(predicting(further, tiny_llama(tied)), training, request),
                        fmt::format("{}, {} further, tied {}: ", what, further, tied), seed++);
    }
  }
}

TEST(MultiTokenProgram, OnEveryDegreeIsTheUnshardedOne) {
  for (const auto& [t, p, d] :
       {std::tuple{2, 1, 1}, {4, 1, 1}, {1, 2, 1}, {1, 4, 2}, {1, 1, 2}, {2, 2, 1}, {2, 2, 2}}) {
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && t == 1) continue;
      PlanRequest request;
      request.tensor_parallel = t;
      request.pipeline_parallel = p;
      request.data_parallel = d;
      request.sequence_parallel = sequence_parallel;
      expect_equivalents(request, fmt::format("t {} p {} D {} sp {}", t, p, d, sequence_parallel));
    }
  }
}

TEST(MultiTokenProgram, UnderEveryScheduleIsTheUnshardedOne) {
  for (const Schedule* schedule : schedules()) {
    for (const int zero : {0, 2}) {
      PlanRequest request;
      request.schedule = schedule->name;
      request.pipeline_parallel = 2;
      request.virtual_stages = schedule->needs_chunks ? 2 : 1;
      request.data_parallel = 2;
      request.zero_stage = zero;
      request.overlap.data_parallel = zero > 0;
      expect_equivalents(request, fmt::format("{} zero {}", schedule->name, zero));
    }
  }
}

TEST(MultiTokenProgram, OnAStageOfItsOwnIsTheUnshardedOne) {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.sequence_parallel = true;
  request.pipeline_parallel = 2;
  request.data_parallel = 1;
  request.layers_per_stage = {4, 0};
  expect_equivalents(request, "4 + 0");
}

TEST(MultiTokenProgram, WithShardedStatesIsTheUnshardedOne) {
  for (const int zero : {1, 2, 3}) {
    for (const int stages : {1, 2}) {
      PlanRequest request;
      request.tensor_parallel = 2;
      request.sequence_parallel = zero != 2;
      request.pipeline_parallel = stages;
      request.data_parallel = 2;
      request.zero_stage = zero;
      request.overlap.data_parallel = zero != 1;
      expect_equivalents(request, fmt::format("zero {} p {}", zero, stages));
    }
  }
}

TEST(MultiTokenProgram, OverContextIsTheUnshardedOne) {
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    PlanRequest request;
    request.context_parallel = 2;
    request.context_parallel_algorithm = algorithm;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.data_parallel = 1;
    expect_equivalents(request, fmt::format("c 2 {}", static_cast<int>(algorithm)));
  }
}

TEST(MultiTokenProgram, ThatRepeatsItsForwardPassIsTheUnshardedOne) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    Training training = tiny_training();
    training.stack.dropout = schedule[0] == '1';
    PlanRequest request;
    request.schedule = schedule;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.pipeline_parallel = 2;
    request.data_parallel = 1;
    request.recompute.mode = RecomputeMode::full;
    expect_equivalents(request, fmt::format("repeated, {}", schedule), training);
  }
}

// The head reads the input of an MTP layer after that layer's forward pass.
TEST(MultiTokenProgram, WithActivationsAndStatesAwayIsTheUnshardedOne) {
  for (const int stages : {1, 2}) {
    for (const auto mode : {RecomputeMode::none, RecomputeMode::full}) {
      PlanRequest request;
      request.tensor_parallel = 2;
      request.sequence_parallel = true;
      request.pipeline_parallel = stages;
      request.schedule = stages > 1 && mode == RecomputeMode::none ? "zb-h1" : "1f1b";
      request.data_parallel = 2;
      request.zero_stage = 4 - stages;
      request.recompute.mode = mode;
      request.offload = {.optimizer = OffloadTarget::host, .activations = OffloadTarget::host};
      expect_equivalents(request, fmt::format("away, p {} {}", stages, static_cast<int>(mode)));
    }
  }
}

TEST(MultiTokenProgram, OfExpertsIsTheUnshardedOne) {
  for (const int tensor : {1, 2}) {
    PlanRequest request;
    request.tensor_parallel = tensor;
    request.sequence_parallel = tensor > 1;
    request.data_parallel = 2;
    request.expert_parallel = 2;
    request.zero_stage = tensor;
    expect_equivalent(tiny_setting(predicting(1, tiny_moe()), request),
                      fmt::format("experts, t {}: ", tensor));
  }
}

// The MTP projection casts its two inputs, gathered in 8 bits or not, and its own columns of a
// gradient.
TEST(MultiTokenProgram, WithCastGemmsIsTheUnshardedOne) {
  Training training = tiny_training();
  training.precision = *find_precision_recipe("fp8");
  for (const bool quantised : {false, true}) {
    training.stack.quantised_gathers = quantised;
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.data_parallel = 1;
    expect_equivalents(request, fmt::format("fp8, quantised {}", quantised), training);
  }
}

}  // namespace
}  // namespace trainyard
