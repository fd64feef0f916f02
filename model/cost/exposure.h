// What shows of an exchange that stands beside compute: what that does not cover, and what it loses
// to the exchange (Stack::overlap_slowdown).
#pragma once

#include <algorithm>

#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// The share of every exchange of tensor parallelism that shows: fused kernels hide a calibrated
// share of all of them (Stack::tensor_parallel_hidden).
inline double shown_of_tensor_parallel(const Stack& stack, const Plan& plan) {
  const double hidden = plan.overlap.tensor_parallel ? stack.tensor_parallel_hidden : 0;
  return 1 - hidden * (1 - stack.overlap_slowdown);
}

// What is saved where the exchange of one micro-batch's tokens stands beside another's compute
// (Megatron-Core's EP A2A overlap; DeepSeek-V3 report, §3.2.1).
inline Seconds hidden_behind(Seconds compute, Seconds exchange, const Stack& stack) {
  return std::min(exchange, compute) * std::max(0.0, 1 - stack.overlap_slowdown);
}

}  // namespace trainyard
