// Measured kernels that cannot be: faster than the datasheet of the device that they are said to be
// of. A table of another device, or of milliseconds in the column of microseconds, shows so.
#pragma once

#include <vector>

#include "model/cluster/device.h"
#include "model/expected.h"
#include "scenarios/kernel_tables.h"

namespace trainyard {

// How far above its datasheet a device may be. The best rows of the operator tables attain 0.92 of
// a peak (A100, bf16) and 0.75 of the links (eight H200): a fifth is room for a device whose clock
// is above the one that its datasheet counts with.
inline constexpr double kAboveDatasheet = 1.2;

// The first row that is faster, by file, row and column. Figures that the device does not have
// bound nothing.
Expected<void> check_speeds(const Device& device, const std::vector<KernelTable>& tables);

}  // namespace trainyard
