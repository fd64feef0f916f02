// The exposed part of an exchange that runs beside compute: what the compute is too short to hide,
// and the time that the compute loses to the exchange (Stack::overlap_slowdown).
#pragma once

#include <algorithm>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// Exposed share of tensor-parallel communication. Where it is overlapped, fused kernels hide a
// calibrated share (Stack::tensor_parallel_hidden), at the slowdown's price.
inline double shown_of_tensor_parallel(const Stack& stack, const Plan& plan) {
  const double hidden = plan.overlap.tensor_parallel ? stack.tensor_parallel_hidden : 0;
  return 1 - hidden * (1 - stack.overlap_slowdown);
}

// Time saved where the all-to-alls of one micro-batch's tokens run beside another's compute:
// min(exchange, compute)·(1 − slowdown) (Megatron-Core's EP A2A overlap; DeepSeek-V3 report,
// §3.2.1).
inline Seconds hidden_behind(Seconds compute, Seconds exchange, const Stack& stack) {
  return std::min(exchange, compute) * std::max(0.0, 1 - stack.overlap_slowdown);
}

}  // namespace trainyard
