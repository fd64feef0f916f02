// Optimizers as records of state and of traffic per parameter, beside the weight and its master
// copy, which come from the precision recipe. Mixed-precision Adam reads gradient 4, master 4, two
// moments 4 + 4 and writes master 4, moments 4 + 4 and the 16-bit weight 2: 30 bytes (handbook §4).
// Element-wise work is bound by that traffic; only Muon's matrix products are counted as FLOP
// (model/workload/optimizer_flop.h). Of what an optimizer leaves to Adam the ends of the network
// are told apart (Muon: embedding, head, final norm); small tensors (a layer's norms; 8-bit Adam's)
// are counted as the rest.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/workload/precision.h"

namespace trainyard {

struct Optimizer {
  std::string_view name;
  double moment_bytes = 8;          // state held, a parameter (Adam: two fp32 moments)
  double more_at_ends = 0;          // and of embedding, head and final norm (Muon: AdamW's second)
  double gradient_reads = 1;        // times that the update reads the gradient
  double weight_reads = 1;          // and the master weight
  int orthogonalisation_steps = 0;  // Newton–Schulz iterations a matrix (Muon)
};

// adam, adamw, sgd (momentum), adam-8bit, adafactor, lion, muon.
std::span<const Optimizer> optimizers();
const Optimizer* find_optimizer(std::string_view name);  // nullptr: no such optimizer

// Where a parameter stands: in a layer, or in embedding, head or final norm.
enum class UpdatedPart : std::uint8_t { layer, end_of_network };

double moment_bytes(const Optimizer& optimizer, UpdatedPart part);

// Traffic of the update, a parameter; the gradient has `gradient_bytes`.
double update_bytes(const Optimizer& optimizer, UpdatedPart part, const PrecisionRecipe& precision,
                    double gradient_bytes);

}  // namespace trainyard
