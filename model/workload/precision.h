// Precision recipes: the dtype of every tensor and GEMM of a training step, as bytes per element
// and as the dtype whose peak rate applies. Sources: Micikevicius et al. 2018 (mixed precision),
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

// The format that a GEMM in 8 or 4 bits reads: floats named by their bits of exponent and mantissa
// (OCP OFP8 and MX 1.0), multiplied by a scale.
enum class NarrowFloat : std::uint8_t { none, e4m3, e5m2, e2m1 };
struct CastFormat {
  NarrowFloat number = NarrowFloat::none;
  int block = 0;  // neighbours in a row that share a scale; 0: one scale for the whole tensor
  bool exists() const { return number != NarrowFloat::none; }
};

// The low-precision recipes are Transformer Engine's: each layer GEMM casts its inputs. Weights are
// kept in 16 bits beside the fp32 master; keeping them in 8 bits twice (by rows and by columns)
// takes as much memory.
struct PrecisionRecipe {
  std::string_view name;
  Dtype layer_gemm = Dtype::bf16;     // GEMMs of the layers: forward, input and weight gradient
  Dtype attention = Dtype::bf16;      // attention core
  Dtype head_gemm = Dtype::bf16;      // output head; also router
  double weight_bytes = 2;            // an element of the weights that the forward pass reads
  double master_weight_bytes = 4;     // of the optimizer's fp32 copy; 0: the weights are fp32
  double activation_bytes = 2;        // activations between operators, an element
  double saved_gemm_input_bytes = 2;  // an input element that a layer GEMM keeps, with its scale
  double quantisation_bytes = 0;      // traffic of casting one GEMM input element; 0: no cast
  double scale_bytes = 0;             // the part of it that finds the scale of a whole tensor
  double dispatch_bytes = 2;          // an element of a token in the MoE dispatch
  CastFormat input_cast;              // of a layer GEMM's input and weights
  CastFormat gradient_cast;           // of its output's gradient

  // Whether a layer GEMM keeps a cast copy of its input instead of the input itself.
  bool casts_gemm_inputs() const { return saved_gemm_input_bytes != activation_bytes; }
};

// bf16, fp16, fp32, fp8, mxfp8, nvfp4.
std::span<const PrecisionRecipe> precision_recipes();
const PrecisionRecipe* find_precision_recipe(std::string_view name);  // nullptr: no such recipe

}  // namespace trainyard
