#include "model/workload/precision.h"

#include <algorithm>
#include <array>

namespace trainyard {
namespace {

// Bytes per element of the block-scaled formats, scales included: mxfp8 has one e8m0 byte for 32
// elements (OCP MX 1.0), nvfp4 one e4m3 byte for 16.
constexpr int kMxfp8Block = 32;
constexpr int kNvfp4Block = 16;
constexpr double kMxfp8Bytes = 1 + 1.0 / kMxfp8Block;
constexpr double kNvfp4Bytes = 0.5 + 1.0 / kNvfp4Block;

// A cast reads the 16-bit element and writes it twice, by rows for the forward GEMM and by columns
// for the weight gradient. One scale for the whole tensor (fp8 current scaling, nvfp4) needs the
// largest magnitude first, which is one more read. mxfp8 finds the scales of its blocks as it reads
// them.
constexpr double kRead = 2;

constexpr std::array<std::string_view, kDtypes> kDtypeNames = {"fp32", "fp16", "bf16", "fp8",
                                                               "fp4"};

constexpr std::array<PrecisionRecipe, 6> kRecipes = {{
    {.name = "bf16"},
    // Loss scaling (Micikevicius et al. 2018) costs nothing that is counted here.
    {.name = "fp16", .layer_gemm = Dtype::fp16, .attention = Dtype::fp16, .head_gemm = Dtype::fp16},
    {.name = "fp32",
     .layer_gemm = Dtype::fp32,
     .attention = Dtype::fp32,
     .head_gemm = Dtype::fp32,
     .weight_bytes = 4,
     .master_weight_bytes = 0,
     .activation_bytes = 4,
     .saved_gemm_input_bytes = 4,
     .dispatch_bytes = 4},
    // Transformer Engine keeps bf16 parameters, casts weights and inputs in front of the layers'
    // linear GEMMs and saves the cast input; attention, router and head stay in bf16. Formats are
    // those of its default recipes: hybrid for fp8, e4m3 throughout for mxfp8.
    {.name = "fp8",
     .layer_gemm = Dtype::fp8,
     .saved_gemm_input_bytes = 1,
     .quantisation_bytes = 2 * kRead + 2,
     .scale_bytes = kRead,
     .input_cast = {NarrowFloat::e4m3},
     .gradient_cast = {NarrowFloat::e5m2}},
    {.name = "mxfp8",
     .layer_gemm = Dtype::fp8,
     .saved_gemm_input_bytes = kMxfp8Bytes,
     .quantisation_bytes = kRead + 2 * kMxfp8Bytes,
     .input_cast = {NarrowFloat::e4m3, kMxfp8Block},
     .gradient_cast = {NarrowFloat::e4m3, kMxfp8Block}},
    {.name = "nvfp4",
     .layer_gemm = Dtype::fp4,
     .saved_gemm_input_bytes = kNvfp4Bytes,
     .quantisation_bytes = 2 * kRead + 2 * kNvfp4Bytes,
     .scale_bytes = kRead,
     .input_cast = {NarrowFloat::e2m1, kNvfp4Block},
     .gradient_cast = {NarrowFloat::e2m1, kNvfp4Block}},
}};

}  // namespace

std::string_view name_of(Dtype dtype) { return kDtypeNames[static_cast<std::size_t>(dtype)]; }

double bytes_per_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return 4;
    case Dtype::fp16:
    case Dtype::bf16:
      return 2;
    case Dtype::fp8:
      return 1;
    case Dtype::fp4:
      break;
  }
  return 0.5;
}

std::span<const PrecisionRecipe> precision_recipes() { return kRecipes; }

const PrecisionRecipe* find_precision_recipe(std::string_view name) {
  const auto* found = std::ranges::find(kRecipes, name, &PrecisionRecipe::name);
  return found == kRecipes.end() ? nullptr : found;
}

}  // namespace trainyard
