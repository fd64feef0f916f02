// Sharded gradients and weights: ZeRO stages 2 and 3, in one group or in several.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/program/lower.h"
#include "model/program/view.h"
#include "model/schedule/schedule.h"
#include "tests/model/program/equivalence.h"

namespace trainyard {
namespace {

class ShardedProgram : public testing::TestWithParam<int> {};

PlanRequest sharded(int stage) {
  PlanRequest request;
  request.data_parallel = 4;
  request.zero_stage = stage;
  return request;
}

TEST_P(ShardedProgram, IsTheUnshardedOneInGroupsOfEverySize) {
  for (const int group : {1, 2, 4}) {
    for (const bool tied : {false, true}) {
      for (const bool overlapped : {false, true}) {
        PlanRequest request = sharded(GetParam());
        request.sharding_group = group;
        request.overlap.data_parallel = overlapped;
        expect_equivalent(tiny_setting(tiny_gpt(tied), request),
                          fmt::format("group {} tied {} overlapped {}: ", group, tied, overlapped),
                          tied ? 6 : 0);
      }
    }
  }
}

TEST_P(ShardedProgram, IsTheUnshardedOneUnderEverySchedule) {
  for (const Schedule* schedule : schedules()) {
    for (const bool tied : {false, true}) {
      PlanRequest request = sharded(GetParam());
      request.data_parallel = 2;
      request.schedule = schedule->name;
      request.pipeline_parallel = 2;
      request.virtual_stages = schedule->needs_chunks ? 2 : 1;
      request.tensor_parallel = 4;
      request.sequence_parallel = tied;
      request.overlap.data_parallel = true;
      expect_equivalent(tiny_setting(tiny_llama(tied), request), std::string(schedule->name), 8);
    }
  }
}

// Whole gradients add up over the micro-batches, and each chunk reduces its own after its last
// backward pass.
TEST_P(ShardedProgram, UnderNoSyncIsTheUnshardedOneUnderEverySchedule) {
  Training training = tiny_training();
  training.stack.pipeline_no_sync = true;
  for (const Schedule* schedule : schedules()) {
    for (const bool overlapped : {false, true}) {
      PlanRequest request = sharded(GetParam());
      request.data_parallel = 2;
      request.schedule = schedule->name;
      request.pipeline_parallel = 2;
      request.virtual_stages = schedule->needs_chunks ? 2 : 1;
      request.overlap.data_parallel = overlapped;
      expect_equivalent(tiny_setting(tiny_llama(overlapped), training, request),
                        std::string(schedule->name), 8);
    }
  }
}

int count_of(const Program& program, const StageProgram& stage, OperationKind kind, Group group) {
  int count = 0;
  for (const Step& step : stage.steps) {
    for (const BlockCall& call : stage.bodies[static_cast<std::size_t>(step.body)].calls) {
      for (const Operation& op : program.blocks[static_cast<std::size_t>(call.block)].operations) {
        count += op.kind == kind && op.group == group ? 1 : 0;
      }
    }
  }
  return count;
}

// Llama's four layers on two stages of two chunks, with one end of the network on each stage: three
// units per stage. Each unit is reduced and gathered once per step, however many micro-batches
// there are.
TEST_P(ShardedProgram, UnderNoSyncMovesEveryUnitOnce) {
  Training training = tiny_training();
  training.stack.pipeline_no_sync = true;
  PlanRequest request = sharded(GetParam());
  request.data_parallel = 2;
  request.schedule = "interleaved-1f1b";
  request.pipeline_parallel = 2;
  request.virtual_stages = 2;
  request.overlap.data_parallel = true;
  const Setting setting = tiny_setting(tiny_llama(false), training, request);
  ASSERT_GT(setting.plan.microbatches, 1);
  ASSERT_EQ(setting.model.layers, 4);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  for (const StageProgram& stage : program->stages) {
    for (const auto kind : {OperationKind::reduce_scatter, OperationKind::all_gather}) {
      EXPECT_EQ(count_of(*program, stage, kind, Group::dense_shard), 3);
    }
  }
}

TEST_P(ShardedProgram, OfExpertsOrOverContextIsTheUnshardedOne) {
  Transformer model = tiny_moe();
  model.biases = true;
  model.router_correction_bias = true;
  for (const auto& [expert, expert_tensor] : {std::pair{2, 1}, std::pair{4, 2}, std::pair{1, 2}}) {
    PlanRequest request = sharded(GetParam());
    request.data_parallel = 2;
    request.tensor_parallel = 2;
    request.sequence_parallel = true;
    request.context_parallel = 2;
    request.expert_parallel = expert;
    request.expert_tensor_parallel = expert_tensor;
    expect_equivalent(tiny_setting(model, request), fmt::format("e {}: ", expert), 2);
  }
}

TEST_P(ShardedProgram, WithRepeatedForwardPassesIsTheUnshardedOne) {
  PlanRequest request = sharded(GetParam());
  request.recompute.mode = RecomputeMode::full;
  request.overlap.data_parallel = true;
  Training training = tiny_training();
  training.stack.keeps_weight_copy = false;
  expect_equivalent(tiny_setting(tiny_llama(true), training, request), "", 5);
}

// In every pass each parameter is gathered once and its gradient reduced once. That holds for the
// tied matrix too, which is one parameter of FSDP2's root unit. Expected, by a separate count:
// micro-batches × the network's parameters.
TEST_P(ShardedProgram, MovesATiedMatrixOncePerPass) {
  const Setting setting = tiny_setting(tiny_gpt(true), sharded(GetParam()));
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  Bytes forward, reduced;
  for (const IssuedOperation issued : operations_of(*program, 0)) {
    const Operation& operation = *issued.operation;
    if (operation.group != Group::dense_shard) continue;
    if (operation.kind == OperationKind::reduce_scatter) reduced += operation.message;
    const bool gathers = operation.kind == OperationKind::all_gather;
    if (gathers && issued.step->pass == StepPass::forward) forward += operation.message;
  }
  const double all =
      setting.plan.microbatches * parameter_count(setting.model, setting.training.sequence_length);
  const double weights = GetParam() == 3 ? setting.training.precision.weight_bytes : 0;
  EXPECT_EQ(reduced, Bytes(all * setting.training.stack.reduction_bytes));
  EXPECT_EQ(forward, Bytes(all * weights));
}

// FSDP2 keeps weights in the optimizer's precision and casts what kernels read, even on one rank.
// What stays from step to step is what handbook §7 counts.
TEST(ShardedStates, OfOneRankKeepsItsWeightsAsTheOptimizerHasThem) {
  Training training = tiny_training();
  training.stack.keeps_weight_copy = false;
  for (const int ranks : {1, 2}) {
    PlanRequest request = sharded(3);
    request.data_parallel = ranks;
    const Setting setting = tiny_setting(tiny_llama(false), training, request);
    const auto program = lower(setting.model, setting.training, setting.plan);
    ASSERT_TRUE(program);
    Bytes held;
    for (const ProgramBuffer& buffer : program->buffers) {
      const bool lasts = buffer.role == BufferRole::weight || buffer.role == BufferRole::gradient ||
                         buffer.role == BufferRole::optimizer;
      if (!lasts) continue;
      held += buffer.bytes() * (buffer.scope == Scope::layer ? setting.model.layers : 1.0);
    }
    const double each = training.precision.master_weight_bytes + training.stack.gradient_bytes +
                        training.optimizer.moment_bytes;
    const double all = parameter_count(setting.model, training.sequence_length);
    EXPECT_EQ(held, Bytes(all * each / ranks)) << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(Stage, ShardedProgram, testing::Values(2, 3));

}  // namespace
}  // namespace trainyard
