// Measured kernels that cannot be of the device that they are said to be of: in a dtype that it
// does not have or that its family is not fitted in, faster than its datasheet, or slower than
// anything it runs. A table of another device, or of milliseconds or nanoseconds in the column of
// microseconds, shows so.
#pragma once

#include "model/cluster/device.h"
#include "model/expected.h"
#include "model/units.h"
#include "scenarios/kernels/tables.h"

namespace trainyard {

// How far above its datasheet a device may be. The best rows of the operator tables attain 0.92 of
// a peak (A100, bf16) and 0.75 of the links (eight H200): a fifth is room for a device whose clock
// is above the one that its datasheet counts with.
inline constexpr double kAboveDatasheet = 1.2;

// How much longer a kernel may take than its roofs and a launch. The slowest row of the operator
// tables takes 114 times as long (experts over 128 H100, where skewed tokens meet on one), the
// slowest collective 44 (all-reduce of eight L40S across sockets), attention 54, GEMMs 11. Times in
// nanoseconds are a thousand times too long.
inline constexpr double kAboveRoofs = 1000;
inline constexpr Seconds kRoofLaunch{10e-6};

// The first row that cannot be, by file, row and column. Figures that the device does not have
// bound nothing.
Expected<void> check_rows(const Device& device, const KernelTable& table);

}  // namespace trainyard
