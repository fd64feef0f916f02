// Finds rows that cannot have been measured on the device that they are said to be of: in a dtype
// that it does not have or that the family is not fitted in, faster than the datasheet allows, or
// slower than any kernel. This catches tables of another device, and times in ms or ns in the
// column of microseconds.
#pragma once

#include "model/cluster/device.h"
#include "model/expected.h"
#include "model/units.h"
#include "scenarios/kernels/tables.h"

namespace trainyard {

// How far above its datasheet a device may be. The best rows of the operator tables attain 0.92 of
// a peak (A100, bf16) and 0.75 of the links (eight H200); the additional fifth is for devices that
// clock higher than their datasheet assumes.
inline constexpr double kAboveDatasheet = 1.2;

// How many times as long as its bounds and a launch a kernel may take. The slowest row of the
// operator tables takes 114 times as long (experts over 128 H100, where skewed tokens meet on one),
// the slowest collective 44 (all-reduce of eight L40S across sockets), attention 54, GEMMs 11.
// Times in nanoseconds would be a thousand times too long.
inline constexpr double kAboveRoofs = 1000;
inline constexpr Seconds kRoofLaunch{10e-6};

// Fails at the first impossible row, with file, row and column. Figures that the device does not
// have bound nothing.
Expected<void> check_rows(const Device& device, const KernelTable& table);

}  // namespace trainyard
