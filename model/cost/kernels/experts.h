// Time of the routed experts' grouped GEMMs (handbook §5): √(C² + M²) of the compute time C, with
// each expert's rows padded to tiles, and the time M to read every expert's weights once. Fitted in
// 16 bits per device to whole expert blocks (both GEMMs, activation, permutation) of inference
// tables; other dtypes follow by the ratio of their dense rates.
#pragma once

#include <array>

#include "model/cluster/device.h"
#include "model/cost/kernels/expert_routing.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// One grouped GEMM of `shape.groups` experts. shape.m: mean rows of an expert.
Seconds grouped_gemm_time(const Device& device, Dtype dtype, const GemmShape& shape);

// The experts of one layer as the tables measure them.
struct ExpertBlock {
  Routing routing;
  double hidden = 0;
  double ffn = 0;  // of one expert on one rank
  int ranks = 1;   // expert-parallel
  bool gated = true;
};

// Forward pass on the busiest rank, in 16 bits: permute, GEMMs, activation, un-permute.
Seconds expert_block_time(const Device& device, const ExpertBlock& block);

// Coordinates of a block in ExpertRates::residual. The last one is 0 for even routing, 1 and 2 for
// power laws of exponent 1.01 and 1.2.
std::array<double, 4> expert_coordinates(const ExpertBlock& block);

}  // namespace trainyard
