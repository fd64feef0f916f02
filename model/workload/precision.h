// Precision recipes: which dtype every tensor and every GEMM of a training step is in, as bytes and
// as the datatype whose peak rate applies. Sources: Micikevicius et al. 2018 (mixed precision),
// Transformer Engine documentation (fp8, mxfp8, nvfp4 recipes), handbook §7.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace trainyard {

enum class Dtype { fp32, fp16, bf16, fp8, fp4 };
inline constexpr int kDtypes = 5;
double bytes_per_element(Dtype dtype);
std::string_view name_of(Dtype dtype);  // fp32, fp16, bf16, fp8, fp4

// What a GEMM in 8 or 4 bits reads: floats with so many bits of exponent and mantissa (OCP OFP8 and
// MX 1.0), times a scale.
enum class NarrowFloat : std::uint8_t { none, e4m3, e5m2, e2m1 };
struct CastFormat {
  NarrowFloat number = NarrowFloat::none;
  int block = 0;  // neighbours in a row that share a scale; 0: the whole tensor does
  bool exists() const { return number != NarrowFloat::none; }
};

// The low-precision recipes are Transformer Engine's: each layer GEMM casts its inputs. Weights
// have 16 bits beside an fp32 master, or 8 twice (by rows and by columns), which takes as much
// memory.
struct PrecisionRecipe {
  std::string_view name;
  Dtype layer_gemm = Dtype::bf16;     // GEMMs of the layers: forward, input and weight gradient
  Dtype attention = Dtype::bf16;      // attention core
  Dtype head_gemm = Dtype::bf16;      // output head; also router
  double weight_bytes = 2;            // the copy that the forward pass reads, an element
  double master_weight_bytes = 4;     // fp32 copy of the optimizer; 0 when the weights are fp32
  double activation_bytes = 2;        // activations between operators, an element
  double saved_gemm_input_bytes = 2;  // what a layer GEMM keeps of its input, scales included
  double quantisation_bytes = 0;      // traffic of casting one GEMM input element (0: none)
  double scale_bytes = 0;             // of it: the read that finds the scale of a whole tensor
  double dispatch_bytes = 2;          // an element of a token in the MoE dispatch
  CastFormat input_cast;              // of a layer GEMM's input and weights
  CastFormat gradient_cast;           // of its output's gradient

  // Whether a layer GEMM keeps a copy of its own instead of the activation it was given.
  bool casts_gemm_inputs() const { return saved_gemm_input_bytes != activation_bytes; }
};

// bf16, fp16, fp32, fp8, mxfp8, nvfp4.
std::span<const PrecisionRecipe> precision_recipes();
const PrecisionRecipe* find_precision_recipe(std::string_view name);  // nullptr: no such recipe

}  // namespace trainyard
