// Offloading does not change the numbers, and what leaves the device and comes back is what the
// estimate says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "model/program/lower.h"
#include "model/program/view.h"
#include "model/schedule/schedule.h"
#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

constexpr OffloadTarget kHost = OffloadTarget::host;

PlanRequest sending(Offload offload, int zero_stage) {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.sequence_parallel = true;
  request.data_parallel = 2;
  request.zero_stage = zero_stage;
  request.offload = offload;
  return request;
}

TEST(Offloaded, ActivationsUnderEveryScheduleAreTheUnshardedNetwork) {
  for (const Schedule* schedule : schedules()) {
    PlanRequest request = sending({.activations = kHost}, 1);
    request.schedule = schedule->name;
    request.pipeline_parallel = 2;
    request.virtual_stages = schedule->needs_chunks ? 2 : 1;
    for (const std::uint64_t seed : {0, 11}) {
      expect_equivalent(tiny_setting(tiny_llama(true), request),
                        fmt::format("{} seed {}: ", schedule->name, seed), seed);
    }
  }
}

TEST(Offloaded, ActivationsOfSomeLayersOrRecomputedAreTheUnshardedNetwork) {
  for (const RecomputeMode mode :
       {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
    for (const int layers : {0, 1}) {
      for (const int zero : {0, 2, 3}) {
        PlanRequest request = sending({.activations = kHost, .activation_layers = layers}, zero);
        request.recompute = {mode, 0};
        Training training = tiny_training();
        training.stack.selective = SelectiveRecompute::every_second_matmul;
        training.stack.dropout = mode == RecomputeMode::full;
        expect_equivalent(
            tiny_setting(tiny_gpt(false), training, request),
            fmt::format("recompute {} layers {} zero {}: ", static_cast<int>(mode), layers, zero),
            3);
      }
    }
  }
}

TEST(Offloaded, ActivationsOfExpertsAndLatentAttentionAreTheUnshardedNetwork) {
  for (const Transformer& model : {tiny_moe(), tiny_latent()}) {
    PlanRequest request = sending({.activations = OffloadTarget::nvme}, 2);
    request.pipeline_parallel = 2;
    request.expert_parallel = model.experts > 0 ? 2 : 1;
    expect_equivalent(tiny_setting(model, request), "experts or latent attention: ", 5);
  }
}

TEST(Offloaded, ActivationsOverContextAreTheUnshardedNetwork) {
  Training training = tiny_training();
  training.sequence_length = 8;
  for (const auto algorithm :
       {ContextAlgorithm::ring, ContextAlgorithm::all_gather, ContextAlgorithm::ulysses}) {
    PlanRequest request = sending({.activations = kHost}, 3);
    request.context_parallel = 2;
    request.context_parallel_algorithm = algorithm;
    expect_equivalent(tiny_setting(tiny_llama(false), training, request),
                      fmt::format("algorithm {}: ", static_cast<int>(algorithm)));
  }
}

TEST(Offloaded, StatesUnderEveryStageOfShardingAreTheUnshardedNetwork) {
  for (const int zero : {0, 1, 2, 3}) {
    for (const bool overlapped : {false, true}) {
      for (const bool tied : {false, true}) {
        PlanRequest request = sending({.optimizer = kHost}, zero);
        request.data_parallel = 4;
        request.sharding_group = overlapped ? 2 : 4;
        request.overlap.data_parallel = overlapped;
        request.pipeline_parallel = tied ? 2 : 1;
        expect_equivalent(tiny_setting(tiny_gpt(tied), request),
                          fmt::format("zero {} overlapped {} tied {}: ", zero, overlapped, tied),
                          7);
      }
    }
  }
}

TEST(Offloaded, StatesOfExpertsAreTheUnshardedNetwork) {
  for (const int zero : {0, 1, 2, 3}) {
    PlanRequest request = sending({.optimizer = kHost, .activations = kHost}, zero);
    request.expert_parallel = 2;
    request.data_parallel = 4;
    expect_equivalent(tiny_setting(tiny_moe(), request), fmt::format("zero {}: ", zero), 2);
  }
}

// One attention sink per rank: parts of one element, and most ranks have none.
TEST(Offloaded, StatesOfOneElementAreTheUnshardedNetwork) {
  Transformer model = tiny_llama(false);
  model.attention_sinks = true;
  PlanRequest request = sending({.optimizer = kHost}, 1);
  request.tensor_parallel = model.attention_heads;
  expect_equivalent(tiny_setting(model, request), "sinks: ");
}

// ---- Weights and gradients --------------------------------------------------------------

constexpr Offload kWeights = {.parameters = kHost};
constexpr Offload kGradients = {.gradients = kHost};
constexpr Offload kStates = {.parameters = kHost, .gradients = kHost, .optimizer = kHost};
constexpr Offload kAll = {
    .parameters = kHost, .gradients = kHost, .optimizer = kHost, .activations = kHost};
constexpr Offload kKinds[] = {
    kWeights,
    kGradients,
    {.parameters = kHost, .gradients = OffloadTarget::nvme},
    {.parameters = kHost, .optimizer = kHost},
    {.gradients = kHost, .optimizer = kHost},
    kStates,
    kAll,
};

std::string named(const Offload& offload) {
  return fmt::format(
      "weights {} gradients {} optimizer {} activations {}",
      offload.parameters != OffloadTarget::none, offload.gradients != OffloadTarget::none,
      offload.optimizer != OffloadTarget::none, offload.activations != OffloadTarget::none);
}

TEST(OffloadedStates, UnderEveryStageOfShardingAreTheUnshardedNetwork) {
  for (const Offload& offload : kKinds) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const bool overlapped : {false, true}) {
        for (const bool tied : {false, true}) {
          PlanRequest request = sending(offload, zero);
          request.data_parallel = 4;
          request.sharding_group = overlapped ? 2 : 4;
          request.overlap.data_parallel = overlapped;
          request.pipeline_parallel = tied ? 2 : 1;
          expect_equivalent(
              tiny_setting(tiny_gpt(tied), request),
              fmt::format("{} zero {} overlapped {}: ", named(offload), zero, overlapped), 7);
        }
      }
    }
  }
}

TEST(OffloadedStates, UnderEveryScheduleAreTheUnshardedNetwork) {
  for (const Schedule* schedule : schedules()) {
    for (const Offload& offload : {kWeights, kGradients, kStates, kAll}) {
      for (const int zero : {0, 1, 2, 3}) {
        for (const bool tied : {false, true}) {
          PlanRequest request = sending(offload, zero);
          request.schedule = schedule->name;
          request.pipeline_parallel = 2;
          request.virtual_stages = schedule->needs_chunks ? 2 : 1;
          request.overlap.data_parallel = zero % 2 == 0;
          expect_equivalent(
              tiny_setting(tiny_llama(tied), request),
              fmt::format("{} {} zero {} tied {}: ", schedule->name, named(offload), zero, tied),
              11);
        }
      }
    }
  }
}

TEST(OffloadedStates, OfOneMatrixAtBothEndsAreTheUnshardedNetwork) {
  for (const Offload& offload : kKinds) {
    for (const int zero : {0, 1, 2, 3}) {
      PlanRequest request = sending(offload, zero);
      request.data_parallel = 4;
      expect_equivalent(tiny_setting(tiny_llama(true), request),
                        fmt::format("{} zero {}: ", named(offload), zero), 3);
    }
  }
}

TEST(OffloadedStates, OfExpertsAreTheUnshardedNetwork) {
  for (const Offload& offload : kKinds) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const int experts : {2, 4}) {
        PlanRequest request = sending(offload, zero);
        request.expert_parallel = experts;
        request.data_parallel = 4;
        expect_equivalent(tiny_setting(tiny_moe(), request),
                          fmt::format("{} zero {} e {}: ", named(offload), zero, experts), 2);
      }
    }
  }
}

TEST(OffloadedStates, RecomputedAreTheUnshardedNetwork) {
  for (const RecomputeMode mode : {RecomputeMode::selective, RecomputeMode::full}) {
    for (const int zero : {0, 2, 3}) {
      PlanRequest request = sending(kAll, zero);
      request.recompute = {mode, 0};
      Training training = tiny_training();
      training.stack.selective = SelectiveRecompute::every_second_matmul;
      expect_equivalent(tiny_setting(tiny_gpt(false), training, request),
                        fmt::format("recompute {} zero {}: ", static_cast<int>(mode), zero), 3);
    }
  }
}

// FSDP keeps no second copy of the weights. The passes' weights are cast from the master weights,
// which lie with the optimizer states.
TEST(OffloadedStates, WithMasterWeightsOnlyAreTheUnshardedNetwork) {
  for (const Offload& offload : {Offload{.optimizer = kHost}, kStates}) {
    for (const int pipeline : {1, 2}) {
      Training training = tiny_training();
      training.stack.keeps_weight_copy = false;
      PlanRequest request = sending(offload, 3);
      request.pipeline_parallel = pipeline;
      expect_equivalent(tiny_setting(tiny_llama(false), training, request),
                        fmt::format("{} p {}: ", named(offload), pipeline), 5);
    }
  }
}

// The maximum of what is on the device, over the units in the order of the program.
double most_on_device(const Program& program, std::string_view name) {
  double now = 0;
  double most = 0;
  for (const IssuedOperation issued : operations_of(program, 0)) {
    for (const Operand& operand : issued.operation->operands) {
      const ProgramBuffer& buffer = program.buffer(operand.buffer);
      if (buffer.name != name || buffer.away != OffloadTarget::none) continue;
      if (operand.access == Access::create) most = std::max(most, ++now);
      if (operand.frees) --now;
    }
  }
  EXPECT_EQ(now, 0);
  return most;
}

// Two units are on the device: the one at work, and the next one.
TEST(OffloadedStates, OfTwoLayersAreOnTheDevice) {
  for (const Offload& offload : {kWeights, kGradients, kStates}) {
    PlanRequest request = unsharded(2);
    request.offload = offload;
    Transformer model = tiny_llama(false);
    model.layers = 6;
    const Setting setting = tiny_setting(model, request);
    const auto program = lower(setting.model, setting.training, setting.plan);
    ASSERT_TRUE(program);
    const bool weights = offload.parameters != OffloadTarget::none;
    const bool gradients = offload.gradients != OffloadTarget::none;
    EXPECT_EQ(most_on_device(*program, "mlp up weight"), weights ? 2 : 0);
    EXPECT_EQ(most_on_device(*program, "mlp up weight gradient"), gradients ? 2 : 0);
  }
}

// Transformer Engine's double buffering: the activations of two layers of a micro-batch are on the
// device at a time, whatever the order in which copies end.
TEST(Offloaded, ActivationsOfTwoLayersAreOnTheDevice) {
  PlanRequest request = unsharded(2);
  request.offload.activations = kHost;
  const Setting setting = tiny_setting(tiny_llama(false), request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  int held = 0;
  int most = 0;
  for (const IssuedOperation issued : operations_of(*program, 0)) {
    for (const Operand& operand : issued.operation->operands) {
      const ProgramBuffer& buffer = program->buffer(operand.buffer);
      if (buffer.name != "mlp up" || buffer.away != OffloadTarget::none) continue;
      if (operand.access == Access::create) most = std::max(most, ++held);
      if (operand.frees) --held;
    }
  }
  EXPECT_EQ(held, 0);
  EXPECT_EQ(most, 2);
}

}  // namespace
}  // namespace trainyard
