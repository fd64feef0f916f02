// Optimizers as records: bytes of state and memory traffic for each parameter. The weight and its
// master copy come from the precision recipe. Mixed-precision Adam reads gradient 4, master 4, two
// moments 4 + 4 and writes master 4, moments 4 + 4 and the 16-bit weight 2: 30 bytes (handbook §4).
// Element-wise updates are bound by that traffic; only Muon's matrix products count as FLOP
// (model/workload/optimizer_flop.h). Muon leaves some parameters to Adam: embedding, head and final
// norm are counted as such; small tensors (a layer's norms, also in 8-bit Adam) count as the rest.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/workload/precision.h"

namespace trainyard {

struct Optimizer {
  std::string_view name;
  double moment_bytes = 8;    // state of a parameter (Adam: two fp32 moments)
  double more_at_ends = 0;    // added in embedding, head and final norm (Muon: AdamW's second)
  double gradient_reads = 1;  // how often the update reads the gradient
  double weight_reads = 1;    // how often it reads the master weight
  int orthogonalisation_steps = 0;  // Newton–Schulz iterations of each matrix (Muon)
};

// adam, adamw, sgd (momentum), adam-8bit, adafactor, lion, muon.
std::span<const Optimizer> optimizers();
const Optimizer* find_optimizer(std::string_view name);  // nullptr: no such optimizer

// Where a parameter is: in a layer, or in embedding, head or final norm.
enum class UpdatedPart : std::uint8_t { layer, end_of_network };

double moment_bytes(const Optimizer& optimizer, UpdatedPart part);

// Bytes that the update reads and writes for a parameter whose gradient has `gradient_bytes`.
double update_bytes(const Optimizer& optimizer, UpdatedPart part, const PrecisionRecipe& precision,
                    double gradient_bytes);

}  // namespace trainyard
