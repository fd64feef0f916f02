// Time of the routed experts' grouped GEMMs (handbook §5): groups padded to tiles, every expert's
// weights read once, joined as a hypotenuse. Fitted in 16 bits per device to whole expert blocks
// (both GEMMs, activation, permutation) of inference tables; other dtypes follow by the ratio of
// their dense rates.
#pragma once

#include <array>

#include "model/cluster/device.h"
#include "model/cost/kernels/expert_routing.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// `shape.groups` GEMMs of one experts' block, m the mean rows of a group.
Seconds grouped_gemm_time(const Device& device, Dtype dtype, const GemmShape& shape);

// The experts of one layer as the tables measure them.
struct ExpertBlock {
  Routing routing;
  double hidden = 0;
  double ffn = 0;  // of one expert on one rank
  int ranks = 1;   // expert-parallel
  bool gated = true;
};

// Forward, on the busiest rank, in 16 bits: permute, GEMMs, activation, un-permute.
Seconds expert_block_time(const Device& device, const ExpertBlock& block);

// Where a block lies in ExpertRates::residual; the last is 0 for even routing, 1 and 2 for power
// laws of exponent 1.01 and 1.2.
std::array<double, 4> expert_coordinates(const ExpertBlock& block);

}  // namespace trainyard
