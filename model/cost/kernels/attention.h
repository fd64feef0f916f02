// Time of the forward pass of a fused attention core (handbook §5): causal tiles of 128 queries ×
// 128 keys, the tail of the longest row, a cost for each query tile, the traffic of Q, K, V and O,
// all times a smooth correction over sequence, heads and their grouping. Parameters are fitted per
// device and head dimension, with and without a sliding window, to an inference kernel that also
// writes the KV cache (docs/accuracy.md); between two head dimensions times are interpolated.
// Measured in 16 bits: fp32 follows by the ratio of the dense rates, as GEMMs do
// (FlashAttention has no kernel of fp32).
#pragma once

#include <array>

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// Forward pass in training. `speed`: of the stack's kernel over the fitted one. With a sliding
// window it takes no longer than the kernel without one over the whole sequence, which does all the
// work; the bound is needed because windowed kernels were measured at few widths.
// Requires: device.supports(dtype).
Seconds attention_time(const Device& device, Dtype dtype, const AttentionShape& shape,
                       double speed);

// The kernel as it was measured: the context phase of inference, whose traffic the last-level cache
// partly serves.
Seconds attention_prefill_time(const Device& device, const AttentionShape& shape);

// Coordinates of a shape in AttentionRates::residual.
std::array<double, 3> attention_coordinates(const AttentionShape& shape);

}  // namespace trainyard
