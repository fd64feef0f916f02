// Time of one operator on one device (handbook §5). What makes a prediction good is the attainable
// rate; these forms were chosen on measured kernels (docs/accuracy.md) and their parameters are
// fitted per device:
//
// - GEMM: tiles over multiprocessors in softened waves, k-loop fill, split-k where tiles are few,
// and a
//   memory roof, joined as (C⁴ + M⁴)^¼; the cheapest of three tile shapes.
// - attention: causal tiles of 128 queries × 128 keys, the last row's tail, a cost a query tile,
// and
//   the traffic of Q, K, V and O.
// - experts: padded groups, weights read once, joined as a hypotenuse.
// - memory-bound operators: bytes over a share of the HBM bandwidth, plus launch.
#pragma once

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"
#include "model/workload/training.h"

namespace trainyard {

// Kernel time of the three passes of an operator, for one micro-batch.
struct OperatorTime {
  Seconds forward;
  Seconds input_gradient;
  Seconds weight_gradient;
};
OperatorTime operator_time(const Device& device, const Training& training, const Operator& op);

// One [m×k]·[k×n]. Requires: device.supports(dtype).
Seconds gemm_time(const Device& device, Dtype dtype, const GemmShape& shape);

// `shape.groups` GEMMs of one experts' block, m the mean rows of a group.
Seconds grouped_gemm_time(const Device& device, Dtype dtype, const GemmShape& shape);

// Forward pass of a fused attention core; `speed` of the kernel over the fitted one.
Seconds attention_time(const Device& device, const AttentionShape& shape, double speed);

// A fused kernel that reads and writes `traffic`; 0 bytes cost nothing.
Seconds memory_bound_time(const Device& device, Bytes traffic);

}  // namespace trainyard
