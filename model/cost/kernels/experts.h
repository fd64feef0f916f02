// Time of the grouped GEMMs of routed experts (handbook §5): groups padded to tiles, every expert's
// weights read once, joined as a hypotenuse. Fitted in 16 bits per device; other dtypes follow by
// the ratio of their dense rates.
#pragma once

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// `shape.groups` GEMMs of one experts' block, m the mean rows of a group.
Seconds grouped_gemm_time(const Device& device, Dtype dtype, const GemmShape& shape);

}  // namespace trainyard
