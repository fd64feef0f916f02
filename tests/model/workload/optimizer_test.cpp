#include "model/workload/optimizer.h"

#include <gtest/gtest.h>

#include "model/workload/optimizer_flop.h"
#include "model/workload/precision.h"

namespace trainyard {
namespace {

double moved_in_bf16(const char* optimizer, UpdatedPart part = UpdatedPart::layer) {
  return update_bytes(*find_optimizer(optimizer), part, *find_precision_recipe("bf16"), 4);
}

// Handbook §4: Adam in mixed precision reads gradient 4, master 4, moments 8 and writes master 4,
// moments 8 and the 16-bit weight 2: 30 bytes a parameter.
TEST(Optimizer, AdamMovesThirtyBytesAParameter) { EXPECT_EQ(moved_in_bf16("adam"), 30); }

// Gradient 4, weight read and written 8, moments read and written 16.
TEST(Optimizer, AdamMovesTwentyEightBytesWhereTheWeightIsItsOwnMaster) {
  EXPECT_EQ(
      update_bytes(*find_optimizer("adam"), UpdatedPart::layer, *find_precision_recipe("fp32"), 4),
      28);
}

// Gradient 4, master 8, one momentum read and written 8, the 16-bit weight 2.
TEST(Optimizer, LionAndMuonMoveTwentyTwoBytesAParameter) {
  EXPECT_EQ(find_optimizer("lion")->moment_bytes, 4);
  EXPECT_EQ(moved_in_bf16("lion"), 22);
  EXPECT_EQ(moved_in_bf16("muon"), 22);
}

// Moonlight (Liu et al. 2025, arXiv 2502.16982, §2.2) updates embedding, head and norms with AdamW,
// whose second moment is read and written too. For other optimizers the part makes no difference.
TEST(Optimizer, MuonMovesThirtyBytesAParameterAtTheEndsOfTheNetwork) {
  const auto at_ends = UpdatedPart::end_of_network;
  EXPECT_EQ(moment_bytes(*find_optimizer("muon"), at_ends), 8);
  EXPECT_EQ(moved_in_bf16("muon", at_ends), 30);
  EXPECT_EQ(moved_in_bf16("lion", at_ends), 22);
  EXPECT_EQ(moved_in_bf16("adam", at_ends), 30);
}

// A block of 2,048 one-byte moments has one fp32 maximum: 2,052 bytes, for two moments. Beside
// them: gradient 4, master 8, weight 2.
TEST(Optimizer, EightBitAdamKeepsTwoBytesAndABlockMaximum) {
  const double moments = 2 * 2052.0 / 2048;
  EXPECT_EQ(find_optimizer("adam-8bit")->moment_bytes, moments);
  EXPECT_EQ(moved_in_bf16("adam-8bit"), 4 + 8 + 2 + 2 * moments);
}

// Three times the gradient, two reads and a write of the master weight, the 16-bit weight.
TEST(Optimizer, AdafactorReadsTheGradientThriceAndKeepsNoMoment) {
  EXPECT_EQ(find_optimizer("adafactor")->moment_bytes, 0);
  EXPECT_EQ(moved_in_bf16("adafactor"), 3 * 4 + 3 * 4 + 2);
}

TEST(Optimizer, SgdKeepsOneMoment) {
  EXPECT_EQ(2 * find_optimizer("sgd")->moment_bytes, find_optimizer("adamw")->moment_bytes);
}

TEST(Optimizer, IsFoundByNameOnly) {
  for (const Optimizer& optimizer : optimizers()) {
    EXPECT_EQ(find_optimizer(optimizer.name), &optimizer);
  }
  EXPECT_EQ(find_optimizer("lamb"), nullptr);
}

// A layer of hidden size 4: four 4×4 matrices of attention and three of 4×16. Five iterations of
// 4m²n + 2m³ FLOP take 5·(4·384 + 3·1152).
Transformer small_network() {
  Transformer model;
  model.layers = 1;
  model.hidden_size = model.head_dim = 4;
  model.attention_heads = model.kv_heads = 1;
  model.ffn_size = 16;
  return model;
}

TEST(UpdateFlop, OfMuonIsThatOfNewtonSchulzOnEveryMatrix) {
  const Optimizer& muon = *find_optimizer("muon");
  EXPECT_EQ(update_flop(muon, small_network(), {}).dense, 5 * (4 * 384 + 3 * 1152));
  EXPECT_EQ(update_flop(muon, small_network(), {}).experts, 0);
}

// Two experts of width 2: six matrices of 2×4, with 80 FLOP per iteration.
TEST(UpdateFlop, OfRoutedExpertsIsApart) {
  Transformer model = small_network();
  model.experts = 2;
  model.expert_ffn_size = 2;
  const UpdateFlop flop = update_flop(*find_optimizer("muon"), model, {.moe = true});
  EXPECT_EQ(flop.dense, 5 * 4 * 384);
  EXPECT_EQ(flop.experts, 5 * 6 * 80);
}

// Query down 4×3 and up 3×4, KV down 4×3 (198 each), KV up 2×6 (112), output 4×4 (384).
TEST(UpdateFlop, OfLatentAttentionHasItsFiveMatrices) {
  Transformer model = small_network();
  model.attention_heads = 2;
  model.latent_attention = LatentAttention{
      .query_rank = 3, .kv_rank = 2, .nope_head_dim = 1, .rope_head_dim = 1, .value_head_dim = 2};
  EXPECT_EQ(update_flop(*find_optimizer("muon"), model, {}).dense,
            5 * (3 * 198 + 112 + 384 + 3 * 1152));
}

TEST(UpdateFlop, IsNothingForElementWiseOptimizers) {
  EXPECT_EQ(update_flop(*find_optimizer("adam"), small_network(), {}).dense, 0);
}

}  // namespace
}  // namespace trainyard
