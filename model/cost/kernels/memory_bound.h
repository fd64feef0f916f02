// Time of a kernel that is bound by memory (handbook §5): bytes over a share of the HBM bandwidth,
// plus launch.
#pragma once

#include "model/cluster/device.h"
#include "model/units.h"

namespace trainyard {

// A fused kernel that reads and writes `traffic` bytes in all; 0 bytes cost nothing.
Seconds memory_bound_time(const Device& device, Bytes traffic);

}  // namespace trainyard
