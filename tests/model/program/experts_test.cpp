// Networks with experts: the loss and the gradients do not depend on where the experts are, nor do
// the tokens that are dropped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

// tiny_moe with shared experts, biases everywhere and a correction bias of the router.
Transformer full_moe() {
  Transformer model = tiny_moe();
  model.biases = true;
  model.router_correction_bias = true;
  model.shared_experts = 2;
  model.shared_expert_ffn_size = 2;
  return model;
}

TEST(ProgramOfExperts, HasTheGradientsOfItsLoss) {
  expect_gradients_of_loss(tiny_setting(tiny_moe(), unsharded(2)));
  expect_gradients_of_loss(tiny_setting(full_moe(), unsharded(2)));
  PlanRequest request = unsharded(2);
  request.capacity_factor = 0.75;
  expect_gradients_of_loss(tiny_setting(full_moe(), request));
}

struct ExpertDegrees {
  int tensor, context, data, expert, expert_tensor;
};
constexpr ExpertDegrees kDegrees[] = {
    {1, 1, 2, 1, 1}, {1, 1, 2, 2, 1}, {1, 1, 4, 2, 1}, {1, 1, 4, 4, 1},
    {2, 1, 1, 1, 1}, {2, 1, 2, 1, 2}, {2, 1, 2, 4, 1}, {2, 1, 2, 2, 2},
    {2, 2, 2, 2, 2}, {1, 2, 2, 2, 1}, {2, 1, 4, 4, 2}, {1, 1, 4, 1, 4},
};

PlanRequest request_for(const ExpertDegrees& degrees) {
  PlanRequest request;
  request.tensor_parallel = degrees.tensor;
  request.sequence_parallel = degrees.tensor > 1;
  request.context_parallel = degrees.context;
  request.data_parallel = degrees.data;
  request.expert_parallel = degrees.expert;
  request.expert_tensor_parallel = degrees.expert_tensor;
  return request;
}

std::string described(const ExpertDegrees& d) {
  return fmt::format("t {} c {} D {} e {} e_t {}: ", d.tensor, d.context, d.data, d.expert,
                     d.expert_tensor);
}

TEST(ProgramOfExperts, IsTheUnshardedOneOnEveryDegree) {
  for (const ExpertDegrees& degrees : kDegrees) {
    expect_equivalent(tiny_setting(tiny_moe(), request_for(degrees)), described(degrees));
    PlanRequest request = request_for(degrees);
    request.overlap.expert_parallel = true;
    expect_equivalent(tiny_setting(full_moe(), request), described(degrees), 3);
  }
}

TEST(ProgramOfExperts, DropsTheTokensThatTheUnshardedOneDrops) {
  for (const ExpertDegrees& degrees : kDegrees) {
    for (const int micro_batch : {1, 2}) {
      PlanRequest request = request_for(degrees);
      request.micro_batch = micro_batch;
      request.capacity_factor = 0.75;
      Training training = tiny_training();
      training.global_batch *= micro_batch;
      expect_equivalent(tiny_setting(full_moe(), training, request), described(degrees));
    }
  }
}

TEST(ProgramOfExperts, IsTheUnshardedOneWithStagesAndShardedStates) {
  for (const char* schedule : {"1f1b", "zb-h1", "dualpipe"}) {
    for (const ExpertDegrees& degrees : {kDegrees[3], kDegrees[7]}) {
      PlanRequest request = request_for(degrees);
      request.schedule = schedule;
      request.pipeline_parallel = 2;
      request.zero_stage = 1;
      request.overlap = {.expert_parallel = true, .pipeline = true, .data_parallel = true};
      Training training = tiny_training();
      training.global_batch = 16;
      Transformer model = full_moe();
      model.tied_embeddings = degrees.tensor > 1;
      expect_equivalent(tiny_setting(model, training, request), described(degrees) + schedule, 5);
    }
  }
}

TEST(ProgramOfExperts, IsTheUnshardedOneInAnotherRankOrder) {
  for (const char* order : {"tp-cp-ep-pp-dp", "pp-dp-tp-cp-ep", "dp-ep-tp-cp-pp"}) {
    PlanRequest request = request_for({2, 1, 2, 2, 2});
    request.pipeline_parallel = 2;
    request.rank_order = order;
    expect_equivalent(tiny_setting(tiny_moe(), request), order);
  }
}

TEST(ProgramOfExperts, WithRepeatedForwardPassesIsTheUnshardedOne) {
  for (const bool early : {false, true}) {
    PlanRequest request = request_for({2, 1, 2, 2, 2});
    request.recompute.mode = RecomputeMode::full;
    Training training = tiny_training();
    training.stack.recompute_stops_early = early;
    training.stack.dropout = !early;
    expect_equivalent(tiny_setting(full_moe(), training, request), "", 4);
  }
}

}  // namespace
}  // namespace trainyard
