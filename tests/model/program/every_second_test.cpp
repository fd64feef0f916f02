// Selective recomputation of every second GEMM: its numbers, and the estimate of its time and of
// what it keeps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/schedule/schedule.h"
#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

Training every_second() {
  Training training = tiny_training();
  training.stack.selective = SelectiveRecompute::every_second_matmul;
  return training;
}

PlanRequest repeating(int tensor, bool sequence_parallel) {
  PlanRequest request;
  request.tensor_parallel = tensor;
  request.sequence_parallel = sequence_parallel;
  request.data_parallel = 2;
  request.recompute = {RecomputeMode::selective, 0};
  return request;
}

Transformer with_qk_norm() {
  Transformer model = tiny_llama(false);
  model.qk_norm = true;
  model.qkv_biases = true;
  return model;
}

TEST(EverySecondMatmul, RepeatedIsTheUnshardedNetwork) {
  for (const Transformer& model : {tiny_gpt(true), tiny_llama(false), with_qk_norm()}) {
    for (const auto& [tensor, sequence_parallel] :
         {std::pair{1, false}, std::pair{2, false}, std::pair{2, true}}) {
      expect_equivalent(
          tiny_setting(model, every_second(), repeating(tensor, sequence_parallel)),
          fmt::format("biases {} t {} sp {}: ", model.biases, tensor, sequence_parallel), 3);
    }
  }
}

// Networks with latent attention, with routed and shared experts, and with both; experts are spread
// over ranks, and one expert is shared by ranks.
TEST(EverySecondMatmul, RepeatedOfExpertsAndLatentAttentionIsTheUnshardedNetwork) {
  Transformer both = tiny_moe();
  both.shared_experts = 1;
  both.shared_expert_ffn_size = both.expert_ffn_size;
  both.biases = true;
  both.latent_attention = tiny_latent().latent_attention;
  for (const Transformer& model : {tiny_latent(), tiny_moe(), both}) {
    for (const auto& [expert, expert_tensor] : {std::pair{1, 1}, std::pair{2, 1}, {2, 2}}) {
      if (model.experts == 0 && expert > 1) continue;
      for (const bool sequence_parallel : {false, true}) {
        if (model.experts > 0 && !sequence_parallel) continue;
        PlanRequest request = repeating(2, sequence_parallel);
        request.expert_parallel = expert;
        request.expert_tensor_parallel = expert_tensor;
        request.zero_stage = 2;
        expect_equivalent(tiny_setting(model, every_second(), request),
                          fmt::format("{} e {} e_t {} sp {}: ", model.name, expert, expert_tensor,
                                      sequence_parallel),
                          5);
      }
    }
  }
}

// The networks include experts and latent attention, and both ends of the network.
TEST(EverySecondMatmul, RepeatedWithCopiesBesideCollectivesIsTheUnshardedNetwork) {
  Transformer both = tiny_moe();
  both.shared_experts = 1;
  both.shared_expert_ffn_size = both.expert_ffn_size;
  both.latent_attention = tiny_latent().latent_attention;
  Training training = every_second();
  training.stack.copies_sharded_sequences = true;
  for (const Transformer& model : {tiny_gpt(true), tiny_llama(false), both}) {
    for (const auto mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
      PlanRequest request = repeating(2, true);
      request.recompute = {mode, 0};
      expect_equivalent(tiny_setting(model, training, request),
                        fmt::format("{} {}: ", model.name, static_cast<int>(mode)), 11);
    }
  }
}

TEST(EverySecondMatmul, RepeatedUnderEveryScheduleIsTheUnshardedNetwork) {
  for (const Schedule* schedule : schedules()) {
    PlanRequest request = repeating(2, true);
    request.schedule = schedule->name;
    request.pipeline_parallel = 2;
    request.virtual_stages = schedule->needs_chunks ? 2 : 1;
    Training training = every_second();
    for (const bool copies : {false, true}) {
      training.stack.copies_sharded_sequences = copies;
      expect_equivalent(tiny_setting(tiny_llama(true), training, request),
                        fmt::format("{}, copies {}: ", schedule->name, copies), 7);
    }
  }
}

TEST(EverySecondMatmul, RepeatedOverContextIsTheUnshardedNetwork) {
  Training training = every_second();
  training.sequence_length = 8;
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    PlanRequest request = repeating(2, true);
    request.context_parallel = 2;
    request.context_parallel_algorithm = algorithm;
    request.zero_stage = 3;
    expect_equivalent(tiny_setting(tiny_llama(false), training, request),
                      fmt::format("algorithm {}: ", static_cast<int>(algorithm)));
  }
}

// A ring begins its backward pass with the rank's own block. Rings of two, three and four ranks,
// with exchanges overlapped or not.
TEST(EverySecondMatmul, RepeatedOverARingIsTheUnshardedNetwork) {
  Transformer sinks = tiny_llama(false);
  sinks.attention_sinks = true;
  Training training = every_second();
  training.sequence_length = 24;
  for (const Transformer& model : {tiny_llama(true), sinks, tiny_latent()}) {
    for (const int ranks : {2, 3, 4}) {
      for (const bool overlaps : {false, true}) {
        PlanRequest request = repeating(1, false);
        request.context_parallel = ranks;
        request.overlap.context_parallel = overlaps;
        expect_equivalent(tiny_setting(model, training, request),
                          fmt::format("{} over {} ranks: ", model.name, ranks), 13);
      }
    }
  }
}

TEST(EverySecondMatmul, RepeatedOverARingKeepsTheScoresInMemory) {
  Training training = every_second();
  training.sequence_length = 8;
  training.stack.flash_attention = false;
  training.stack.dropout = true;
  PlanRequest request = repeating(2, false);
  request.context_parallel = 2;
  expect_equivalent(tiny_setting(tiny_gpt(false), training, request), "", 17);
}

TEST(EverySecondMatmul, RepeatedWithDropoutHasTheGradientsOfItsLoss) {
  Training training = every_second();
  training.stack.dropout = true;
  PlanRequest request = unsharded(2);
  request.recompute = {RecomputeMode::selective, 0};
  expect_gradients_of_loss(tiny_setting(tiny_gpt(false), training, request));
}

}  // namespace
}  // namespace trainyard
