// Time of a fused attention core, forward (handbook §5): causal tiles of 128 queries × 128 keys,
// the last row's tail, a cost a query tile, and the traffic of Q, K, V and O. Parameters are fitted
// per device and head dimension; between two of them they are interpolated.
#pragma once

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// Forward pass; `speed` of the kernel over the fitted one.
Seconds attention_time(const Device& device, const AttentionShape& shape, double speed);

}  // namespace trainyard
