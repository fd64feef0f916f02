#include "model/workload/precision.h"

#include <gtest/gtest.h>

#include "model/workload/optimizer.h"

namespace trainyard {
namespace {

// Handbook §7: K = 12 bytes are master weight 4 and Adam's moments 4 + 4. With weight 2 and
// gradient 2 that is 16 bytes per parameter (Rajbhandari et al. 2020), or 18 with an fp32 gradient.
TEST(PrecisionRecipe, KeepsTwelveOptimizerBytesBesideTheWeight) {
  for (const char* name : {"bf16", "fp16", "fp8", "mxfp8", "nvfp4"}) {
    const PrecisionRecipe* recipe = find_precision_recipe(name);
    ASSERT_NE(recipe, nullptr) << name;
    EXPECT_EQ(recipe->weight_bytes, 2) << name;
    EXPECT_EQ(recipe->master_weight_bytes + find_optimizer("adam")->moment_bytes, 12) << name;
  }
}

// Pure fp32: no second copy; golden.md, Llama-2-7B: fp32 DDP states 107.8 GB (16 bytes each).
TEST(PrecisionRecipe, OfPureFp32HasNoMaster) {
  const PrecisionRecipe* recipe = find_precision_recipe("fp32");
  ASSERT_NE(recipe, nullptr);
  const double states =
      recipe->weight_bytes + 4 + recipe->master_weight_bytes + find_optimizer("adam")->moment_bytes;
  EXPECT_NEAR(states * 6738415616.0, 107.8e9, 0.05e9);
}

// Transformer Engine: layer GEMMs run in 8 bits with saved inputs of 1 byte; the rest stays in
// bf16.
TEST(PrecisionRecipe, OfEightBitsTouchesLayerGemmsOnly) {
  const PrecisionRecipe* recipe = find_precision_recipe("fp8");
  ASSERT_NE(recipe, nullptr);
  EXPECT_EQ(recipe->layer_gemm, Dtype::fp8);
  EXPECT_EQ(recipe->attention, Dtype::bf16);
  EXPECT_EQ(recipe->head_gemm, Dtype::bf16);
  EXPECT_EQ(recipe->saved_gemm_input_bytes, 1);
  EXPECT_TRUE(recipe->casts_gemm_inputs());
}

// OCP MX 1.0: 33 bytes for 32 elements; nvfp4: 16 elements in 8 bytes and one scale byte.
TEST(PrecisionRecipe, OfBlockFormatsCountsTheScales) {
  EXPECT_DOUBLE_EQ(32 * find_precision_recipe("mxfp8")->saved_gemm_input_bytes, 33);
  EXPECT_DOUBLE_EQ(16 * find_precision_recipe("nvfp4")->saved_gemm_input_bytes, 9);
}

// The prototype's fit gave 6 to 7 bytes per element for the casts of fp8; bf16 casts nothing.
TEST(PrecisionRecipe, CastsCostTraffic) {
  EXPECT_EQ(find_precision_recipe("fp8")->quantisation_bytes, 6);
  EXPECT_EQ(find_precision_recipe("bf16")->quantisation_bytes, 0);
  EXPECT_FALSE(find_precision_recipe("bf16")->casts_gemm_inputs());
}

TEST(PrecisionRecipe, IsFoundByNameOnly) {
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    EXPECT_EQ(find_precision_recipe(recipe.name), &recipe);
  }
  EXPECT_EQ(precision_recipes().size(), 6u);
  EXPECT_EQ(find_precision_recipe("FP8"), nullptr);
}

TEST(Dtypes, HaveTheirWidth) {
  EXPECT_EQ(bytes_per_element(Dtype::fp32), 4);
  EXPECT_EQ(bytes_per_element(Dtype::bf16), bytes_per_element(Dtype::fp16));
  EXPECT_EQ(bytes_per_element(Dtype::fp8), 1);
  EXPECT_EQ(bytes_per_element(Dtype::fp4), 0.5);
}

}  // namespace
}  // namespace trainyard
