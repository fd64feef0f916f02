// Time of a fused attention core, forward (handbook §5): causal tiles of 128 queries × 128 keys,
// the last row's tail, a cost a query tile, the traffic of Q, K, V and O, and a smooth correction
// of it all over sequence, heads and their grouping. Parameters are fitted per device, head
// dimension and with or without a window, to an inference kernel that also writes the KV cache
// (docs/accuracy.md); between two head dimensions times are interpolated. Measured in 16 bits: fp32
// follows by the ratio of the dense rates, as GEMMs do (FlashAttention has no kernel of fp32).
#pragma once

#include <array>

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// Forward pass in training; `speed` of the kernel over the fitted one. A window never takes longer
// than the kernel without one over as many keys as queries, which does all its work: windowed
// kernels were measured at few widths. Requires: device.supports(dtype).
Seconds attention_time(const Device& device, Dtype dtype, const AttentionShape& shape,
                       double speed);

// The kernel as it was measured: a context phase, whose traffic is partly served by the cache.
Seconds attention_prefill_time(const Device& device, const AttentionShape& shape);

// Where a shape lies in AttentionRates::residual.
std::array<double, 3> attention_coordinates(const AttentionShape& shape);

}  // namespace trainyard
