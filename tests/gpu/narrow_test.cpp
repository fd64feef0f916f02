// Recipes in 8 bits: which devices run them, and that products are then computed in 8 bits.
#include <gtest/gtest.h>

#include "executor/cuda/cast_formats.h"
#include "executor/cuda/compute.h"
#include "executor/cuda/cuda_backend.h"
#include "executor/rank_executor.h"
#include "executor/transport/transport.h"
#include "model/program/lower.h"
#include "tests/gpu/emulated/runtime.h"
#include "tests/model/program/tiny.h"

namespace trainyard {
namespace {

std::string refusal(std::string_view precision, int major) {
  PlanRequest request;
  request.data_parallel = 1;
  Training training = tiny_training();
  training.precision = *find_precision_recipe(precision);
  const Setting setting = tiny_setting(tiny_llama(false), training, request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  if (!program) return program.error().message;
  const RankLayout layout(setting.plan, setting.model.kv_heads);
  const auto transport = make_single_rank_transport();
  set_emulated_capability(major);
  const auto backend = make_cuda_backend({setting, *program, layout, *transport});
  set_emulated_capability(10);
  return backend ? "" : backend.error().message;
}

TEST(RecipesIn8Bits, AskForADeviceThatHasThem) {
  EXPECT_EQ(refusal("fp8", 8),
            "found \"fp8\", which needs compute capability 9.0; this GPU has 8.0");
  EXPECT_EQ(refusal("fp8", 9), "");
  EXPECT_EQ(refusal("mxfp8", 9),
            "found \"mxfp8\", which needs compute capability 10.0; this GPU has 9.0");
  EXPECT_EQ(refusal("mxfp8", 10), "");
  EXPECT_EQ(refusal("bf16", 8), "");
}

// The library computes a product of one layout directly and a product of another through copies.
// What it does not accept is computed in bf16.
TEST(RecipesIn8Bits, MultiplyIn8BitsWhereTheLibraryDoes) {
  CudaStatus status;
  DeviceMemory memory(status, 0, 1);
  Gemm gemm(status);
  const Queue queue{status, nullptr, memory.pool()};
  const auto narrow_products = [&](std::int64_t width, bool turned) {
    const Scratch a(queue, 32, width, ElementType::e4m3), b(queue, width, width, ElementType::e4m3),
        c(queue, 32, width, ElementType::f32);
    upload(queue, *a, std::vector<float>(static_cast<std::size_t>(a->size()), 1.0F));
    upload(queue, *b, std::vector<float>(static_cast<std::size_t>(b->size()), 1.0F));
    const int before = emulated_narrow_products().all;
    GemmOperand right = operand_of(*b);
    right.transposed = turned;
    gemm.multiply(queue, operand_of(*a), right, operand_of(*c), false);
    EXPECT_EQ(downloaded(queue, *c).back(), static_cast<float>(width));
    return emulated_narrow_products().all - before;
  };
  EXPECT_EQ(narrow_products(48, true), 1);
  EXPECT_EQ(narrow_products(48, false), 1);
  EXPECT_EQ(narrow_products(40, true), 0);
  EXPECT_TRUE(status.ok()) << status.message();
}

class NobodyLooks final : public Watch {
  void begins(std::int64_t, const IssuedOperation&) override {}
};

// In this recipe gradients are cast to e5m2 and everything else to e4m3, so the types tell to which
// pass a product belongs.
TEST(RecipesIn8Bits, SumFastInForwardPassesAlone) {
  Transformer dense = tiny_llama(false), experts = tiny_moe();
  for (Transformer* model : {&dense, &experts}) {
    model->hidden_size = 64;
    model->attention_heads = 4;
    model->head_dim = 16;
    model->ffn_size = 96;
    model->expert_ffn_size = model == &experts ? 32 : 0;
    PlanRequest request;
    request.data_parallel = 1;
    Training training = tiny_training();
    training.precision = *find_precision_recipe("fp8");
    const Setting setting = tiny_setting(*model, training, request);
    const auto program = lower(setting.model, setting.training, setting.plan);
    ASSERT_TRUE(program);
    const RankLayout layout(setting.plan, setting.model.kv_heads);
    const auto transport = make_single_rank_transport();
    const auto backend = make_cuda_backend({setting, *program, layout, *transport});
    ASSERT_TRUE(backend) << backend.error().message;
    NobodyLooks nobody;
    RankExecutor executor(setting, *program, layout, 0, **backend, nobody);
    const NarrowProducts before = emulated_narrow_products();
    ASSERT_TRUE(executor.step(0, 0, nobody));
    const NarrowProducts after = emulated_narrow_products();
    EXPECT_GT(after.fast, before.fast);
    EXPECT_EQ(after.fast - before.fast, after.of_e4m3 - before.of_e4m3);
    EXPECT_EQ(after.fast_of_e5m2, before.fast_of_e5m2);
    EXPECT_GT(after.all - before.all, after.fast - before.fast);
  }
}

// Gathers of sequence parallelism carry a cast, and so do the copies after them; masks of dropout
// are not numbers in 8 bits.
TEST(RecipesIn8Bits, AreFollowedThroughAProgram) {
  PlanRequest request;
  request.tensor_parallel = 2;
  request.data_parallel = 1;
  request.sequence_parallel = true;
  Training training = tiny_training();
  training.precision = *find_precision_recipe("fp8");
  training.stack.quantised_gathers = true;
  training.stack.copies_sharded_sequences = true;
  training.stack.dropout = true;
  const Setting setting = tiny_setting(tiny_gpt(false), training, request);
  const auto program = lower(setting.model, setting.training, setting.plan);
  ASSERT_TRUE(program);
  const auto formats = cast_formats(*program);
  int gathered = 0, masks = 0;
  for (const Block& block : program->blocks) {
    for (const Operation& operation : block.operations) {
      for (const Operand& operand : operation.operands) {
        const auto buffer = static_cast<std::size_t>(operand.buffer);
        const bool of_8_bits = program->buffers[buffer].dtype == Dtype::fp8;
        const bool copied = operation.part && is_sequence_copy(*operation.part);
        if ((operation.kind == OperationKind::all_gather || copied) && of_8_bits) {
          EXPECT_TRUE(formats[buffer].exists()) << program->buffers[buffer].name;
          ++gathered;
        }
        if (operation.kind != OperationKind::dropout_gradient || !of_8_bits) continue;
        EXPECT_FALSE(formats[buffer].exists()) << program->buffers[buffer].name;
        ++masks;
      }
    }
  }
  EXPECT_GT(gathered, 0);
  EXPECT_GT(masks, 0);
}

}  // namespace
}  // namespace trainyard
