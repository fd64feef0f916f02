// The kinds of attention (latent, with sinks, with scores in memory) on one rank and on many.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

struct Kind {
  const char* name;
  Transformer model;
  bool fused = true;
};

std::vector<Kind> kinds() {
  Transformer direct = tiny_latent();
  direct.latent_attention->query_rank = 0;
  Transformer biased = tiny_latent();
  biased.biases = true;
  Transformer sinks = tiny_llama(false);
  sinks.attention_sinks = true;
  sinks.sliding_window = 3;
  sinks.full_attention_every = 2;
  return {{"latent", tiny_latent()},
          {"latent without a query rank", direct},
          {"latent with biases", biased},
          {"sinks", sinks},
          {"sinks, scores in memory", sinks, false},
          {"scores in memory", tiny_gpt(false), false}};
}

Training training_of(const Kind& kind) {
  Training training = tiny_training();
  training.stack.flash_attention = kind.fused;
  training.stack.dropout = !kind.fused;
  training.sequence_length = 8;
  return training;
}

TEST(ProgramOfAttention, HasTheGradientsOfItsLoss) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    expect_gradients_of_loss(tiny_setting(kind.model, training_of(kind), unsharded(2)));
  }
}

TEST(ProgramOfAttention, IsTheUnshardedOneOverTensorRanks) {
  for (const Kind& kind : kinds()) {
    for (const bool sequence_parallel : {false, true}) {
      PlanRequest request;
      request.tensor_parallel = 2;
      request.sequence_parallel = sequence_parallel;
      request.pipeline_parallel = 2;
      request.data_parallel = 2;
      request.schedule = sequence_parallel ? "zb-h1" : "1f1b";
      request.zero_stage = sequence_parallel ? 3 : 0;
      expect_equivalent(tiny_setting(kind.model, training_of(kind), request), kind.name, 4);
    }
  }
}

TEST(ProgramOfAttention, IsTheUnshardedOneOverContextRanks) {
  for (const Kind& kind : kinds()) {
    for (const auto algorithm :
         {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
      PlanRequest request;
      request.tensor_parallel = 2;
      request.sequence_parallel = true;
      request.context_parallel = 2;
      request.context_parallel_algorithm = algorithm;
      request.data_parallel = 2;
      request.micro_batch = 2;
      expect_equivalent(tiny_setting(kind.model, training_of(kind), request), kind.name);
    }
  }
}

// The scores that are recomputed are those of all keys that the forward pass saw: block by block in
// a ring, gathered, or dealt by Ulysses.
TEST(ProgramOfAttention, WithItsScoresRepeatedOverContextRanksIsTheUnshardedOne) {
  for (const Kind& kind : kinds()) {
    if (kind.fused) continue;
    for (const auto algorithm :
         {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
      for (const bool overlapped : {false, true}) {
        PlanRequest request;
        request.tensor_parallel = 2;
        request.sequence_parallel = true;
        request.context_parallel = 2;
        request.context_parallel_algorithm = algorithm;
        request.overlap.context_parallel = overlapped;
        request.data_parallel = 2;
        request.recompute.mode = RecomputeMode::selective;
        expect_equivalent(tiny_setting(kind.model, training_of(kind), request), kind.name, 6);
      }
    }
  }
}

// Rings of four blocks, and scores that lie on the host between the passes.
TEST(ProgramOfAttention, WithTheScoresOfEachBlockInMemoryIsTheUnshardedOne) {
  for (const Kind& kind : kinds()) {
    if (kind.fused) continue;
    for (const bool away : {false, true}) {
      for (const RecomputeMode mode :
           {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
        PlanRequest request;
        request.context_parallel = 4;
        request.context_parallel_algorithm = ContextAlgorithm::ring;
        request.pipeline_parallel = 2;
        request.data_parallel = 2;
        request.schedule = away ? "1f1b" : "zb-h1";
        request.recompute.mode = mode;
        if (away) request.offload.activations = OffloadTarget::host;
        expect_equivalent(
            tiny_setting(kind.model, training_of(kind), request),
            fmt::format("{} away {} recompute {}: ", kind.name, away, static_cast<int>(mode)), 8);
      }
    }
  }
}

TEST(ProgramOfAttention, WithItsForwardPassRepeatedIsTheUnshardedOne) {
  for (const Kind& kind : kinds()) {
    PlanRequest request;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.data_parallel = 2;
    request.recompute.mode = kind.fused ? RecomputeMode::full : RecomputeMode::selective;
    expect_equivalent(tiny_setting(kind.model, training_of(kind), request), kind.name);
  }
}

}  // namespace
}  // namespace trainyard
