// The sharded program computes what the unsharded program computes, to rounding: loss, gradients,
// and weights after the step. The gradients of the unsharded program are those of its loss.
#include "tests/model/program/equivalence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/schedule/listed.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

void expect_own_gradients(const Transformer& model) {
  expect_gradients_of_loss(tiny_setting(model, unsharded(2)));
}

TEST(Program, OfOneRankHasTheGradientsOfItsLoss) {
  expect_own_gradients(tiny_gpt(false));
  expect_own_gradients(tiny_gpt(true));
  expect_own_gradients(tiny_llama(false));
  expect_own_gradients(tiny_llama(true));
}

TEST(Program, HasTheGradientsOfItsLossWithNormedHeadsWindowsAndUnfusedAttention) {
  Transformer model = tiny_llama(false);
  model.qk_norm = true;
  model.qkv_biases = true;
  model.sliding_window = 2;
  model.full_attention_every = 2;
  expect_own_gradients(model);
}

// ---- Every degree, alone and together ---------------------------------------------------

struct Degrees {
  int tensor, pipeline, data;
};

void expect_degrees(const Transformer& model, const Degrees& degrees, bool sequence_parallel) {
  PlanRequest request;
  request.tensor_parallel = degrees.tensor;
  request.pipeline_parallel = degrees.pipeline;
  request.data_parallel = degrees.data;
  request.sequence_parallel = sequence_parallel && degrees.tensor > 1;
  expect_equivalent(tiny_setting(model, request),
                    fmt::format("t {} p {} D {} sp {}: ", degrees.tensor, degrees.pipeline,
                                degrees.data, sequence_parallel));
}

void expect_every_degree(const Transformer& model) {
  for (const int t : {1, 2, 4}) {
    for (const int p : {1, 2, 4}) {
      for (const int d : {1, 2, 4}) {
        if (t * p * d > 16) continue;
        expect_degrees(model, {t, p, d}, false);
        if (t > 1) expect_degrees(model, {t, p, d}, true);
      }
    }
  }
}

TEST(Program, OfAGptIsTheUnshardedOneOnEveryDegree) { expect_every_degree(tiny_gpt(false)); }
TEST(Program, OfATiedGptIsTheUnshardedOneOnEveryDegree) { expect_every_degree(tiny_gpt(true)); }
TEST(Program, OfALlamaIsTheUnshardedOneOnEveryDegree) { expect_every_degree(tiny_llama(false)); }
TEST(Program, OfATiedLlamaIsTheUnshardedOneOnEveryDegree) { expect_every_degree(tiny_llama(true)); }

PlanRequest two_by_two_by_two() {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.pipeline_parallel = 2;
  request.data_parallel = 2;
  return request;
}

// ---- Every schedule, in any order that the dependencies allow ------------------------------

class ScheduledProgram : public testing::TestWithParam<const Schedule*> {};

std::string identifier(const testing::TestParamInfo<const Schedule*>& info) {
  std::string name(info.param->name);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

TEST_P(ScheduledProgram, IsTheUnshardedOneInEveryOrder) {
  for (const bool tied : {false, true}) {
    for (const bool sequence_parallel : {false, true}) {
      PlanRequest request;
      request.schedule = GetParam()->name;
      request.tensor_parallel = 2;
      request.sequence_parallel = sequence_parallel;
      request.pipeline_parallel = 2;
      request.virtual_stages = GetParam()->needs_chunks ? 2 : 1;
      request.data_parallel = 2;
      request.overlap = {.tensor_parallel = true, .pipeline = true, .data_parallel = true};
      const Setting setting = tiny_setting(tiny_gpt(tied), request);
      for (const std::uint64_t seed : {0, 1, 2, 3}) {
        expect_equivalent(
            setting, fmt::format("tied {} sp {} seed {}: ", tied, sequence_parallel, seed), seed);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ScheduledProgram, testing::ValuesIn(schedules()), identifier);

TEST(Program, OfTwoWaysThroughFourStagesWithShardedStatesIsTheUnshardedOne) {
  Training training = tiny_training();
  training.global_batch = 16;
  for (const bool overlapped : {false, true}) {
    PlanRequest request;
    request.schedule = "dualpipe";
    request.pipeline_parallel = 4;
    request.data_parallel = 2;
    request.zero_stage = 1;
    request.overlap.data_parallel = overlapped;
    for (const bool tied : {false, true}) {
      expect_equivalent(tiny_setting(tiny_llama(tied), training, request), "", 11);
    }
  }
}

// A user's list with the input gradients in the order of the forward passes, and then all weight
// gradients in reverse.
TEST(Program, OfAUsersPassListIsTheUnshardedOne) {
  PassList passes(2);
  for (std::vector<Pass>& stage : passes) {
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      stage.push_back({PassKind::forward, microbatch, 0});
    }
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      stage.push_back({PassKind::input_gradient, microbatch, 0});
    }
    for (int microbatch = 3; microbatch >= 0; --microbatch) {
      stage.push_back({PassKind::weight_gradient, microbatch, 0});
    }
  }
  PlanRequest request = two_by_two_by_two();
  request.passes = list_schedule("mine", {.stages = 2, .microbatches = 4}, passes, true).value();
  expect_equivalent(tiny_setting(tiny_llama(true), request), "", 2);
}

// ---- What stacks and networks add ---------------------------------------------------------

TEST(Program, WithUnevenStagesIsTheUnshardedOne) {
  PlanRequest request = two_by_two_by_two();
  request.layers_per_stage = {4, 0};
  expect_equivalent(tiny_setting(tiny_llama(false), request), "");
  request.layers_per_stage = {0, 4};
  expect_equivalent(tiny_setting(tiny_llama(true), request), "");
}

TEST(Program, InAnotherRankOrderIsTheUnshardedOne) {
  for (const char* order : {"pp-dp-tp-cp-ep", "tp-cp-ep-pp-dp", "dp-tp-pp-cp-ep"}) {
    PlanRequest request = two_by_two_by_two();
    request.rank_order = order;
    expect_equivalent(tiny_setting(tiny_gpt(true), request), order);
  }
}

TEST(Program, WithScatteredSendsIsTheUnshardedOne) {
  Training training = tiny_training();
  training.stack.scattered_sends = true;
  PlanRequest request = two_by_two_by_two();
  request.sequence_parallel = false;
  expect_equivalent(tiny_setting(tiny_gpt(false), training, request), "");
}

TEST(Program, WithScoresInMemoryAndUnfusedCrossEntropyIsTheUnshardedOne) {
  Training training = tiny_training();
  training.stack.flash_attention = false;
  training.stack.fused_cross_entropy = false;
  expect_equivalent(tiny_setting(tiny_gpt(false), training, two_by_two_by_two()), "");
}

TEST(Program, WithNormedHeadsAndWindowsIsTheUnshardedOne) {
  Transformer model = tiny_llama(false);
  model.qk_norm = true;
  model.qkv_biases = true;
  model.sliding_window = 2;
  model.full_attention_every = 2;
  for (const bool sequence_parallel : {false, true}) {
    PlanRequest request = two_by_two_by_two();
    request.tensor_parallel = 4;
    request.sequence_parallel = sequence_parallel;
    expect_equivalent(tiny_setting(model, request), "");
  }
}

// ---- Sharded states, and forward passes that are repeated -----------------------------------

TEST(Program, WithShardedOptimizerStatesIsTheUnshardedOne) {
  for (const bool overlapped : {false, true}) {
    for (const int group : {2, 4}) {
      PlanRequest request = two_by_two_by_two();
      request.data_parallel = 4;
      request.zero_stage = 1;
      request.sharding_group = group;
      request.sequence_parallel = true;
      request.overlap.data_parallel = overlapped;
      for (const bool tied : {false, true}) {
        expect_equivalent(tiny_setting(tiny_gpt(tied), request),
                          fmt::format("overlapped {} group {} tied {}: ", overlapped, group, tied),
                          7);
      }
    }
  }
}

TEST(Program, WithRepeatedForwardPassesIsTheUnshardedOne) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    for (const int layers : {0, 1}) {
      PlanRequest request = two_by_two_by_two();
      request.schedule = schedule;
      request.sequence_parallel = layers == 0;
      request.recompute = {RecomputeMode::full, layers};
      Training training = tiny_training();
      training.stack.recompute_stops_early = layers == 1;
      expect_equivalent(tiny_setting(tiny_llama(true), training, request),
                        fmt::format("{} {}: ", schedule, layers), 5);
    }
  }
}

TEST(Program, WithRepeatedAttentionCoresIsTheUnshardedOne) {
  Training training = tiny_training();
  training.stack.flash_attention = false;
  PlanRequest request = two_by_two_by_two();
  request.recompute = {RecomputeMode::selective, 0};
  expect_equivalent(tiny_setting(tiny_gpt(false), training, request), "");
  training.stack.selective = SelectiveRecompute::half_of_layers;
  expect_equivalent(tiny_setting(tiny_gpt(false), training, request), "");
}

TEST(Program, WithUnlikeRecomputationOfItsStagesIsTheUnshardedOne) {
  Training training = tiny_training();
  training.stack.flash_attention = false;
  PlanRequest request = two_by_two_by_two();
  request.recompute_per_stage = {{RecomputeMode::full, 1}, {RecomputeMode::selective, 0}};
  expect_equivalent(tiny_setting(tiny_gpt(false), training, request), "full, selective: ");
  request.recompute_per_stage = {{}, {RecomputeMode::full, 0}};
  expect_equivalent(tiny_setting(tiny_llama(true), training, request), "none, full: ", 5);
}

TEST(Program, WithDropoutIsTheUnshardedOneAndHasTheGradientsOfItsLoss) {
  Training training = tiny_training();
  training.stack.dropout = true;
  for (const bool fused : {false, true}) {
    training.stack.flash_attention = fused;
    expect_gradients_of_loss(tiny_setting(tiny_gpt(true), training, unsharded(2)));
    for (const bool sequence_parallel : {false, true}) {
      PlanRequest request = two_by_two_by_two();
      request.sequence_parallel = sequence_parallel;
      request.recompute = {fused ? RecomputeMode::full : RecomputeMode::selective, 0};
      expect_equivalent(tiny_setting(tiny_gpt(true), training, request),
                        fmt::format("fused {} sp {}: ", fused, sequence_parallel), 9);
    }
  }
}

// ---- The sequence over several ranks ----------------------------------------------------------

class ProgramOverContext : public testing::TestWithParam<ContextAlgorithm> {};

TEST_P(ProgramOverContext, IsTheUnshardedOne) {
  Training training = tiny_training();
  training.sequence_length = 8;
  for (const int context : {2, 4}) {
    for (const int tensor : {1, 2}) {
      if (context * tensor > 4 && GetParam() == ContextAlgorithm::ulysses) continue;  // 4 heads
      for (const bool windowed : {false, true}) {
        PlanRequest request;
        request.context_parallel = context;
        request.context_parallel_algorithm = GetParam();
        request.tensor_parallel = tensor;
        request.sequence_parallel = tensor > 1 && context == 2;
        request.pipeline_parallel = 2;
        request.data_parallel = 2;
        request.micro_batch = 2;
        request.zero_stage = windowed ? 1 : 0;
        request.overlap.context_parallel = windowed;
        Transformer model = tiny_llama(windowed);
        model.sliding_window = windowed ? 3 : 0;
        expect_equivalent(tiny_setting(model, training, request),
                          fmt::format("c {} t {} windowed {}: ", context, tensor, windowed), 3);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ProgramOverContext,
                         testing::Values(ContextAlgorithm::ring, ContextAlgorithm::all_gather,
                                         ContextAlgorithm::ulysses));

TEST(Program, OfTwoSequencesAMicrobatchIsTheUnshardedOne) {
  PlanRequest request = two_by_two_by_two();
  request.micro_batch = 2;
  expect_equivalent(tiny_setting(tiny_llama(true), request), "");
}

}  // namespace
}  // namespace trainyard
