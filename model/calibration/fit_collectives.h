// Fits a device's collectives inside one NVLink domain to measured curves: latency, bandwidth and
// the √S term of each operation and number of devices (handbook §6), then a smooth residual over
// the size, shrunk until time rises with the size. A row is left out if it is more than a factor of
// two outside what its neighbours allow. Deterministic.
//
// If 2 and 8 devices are measured and 4 are not, two kinds of curves for 4 are derived. The
// all-reduce: NCCL reduces in the switch only among more than four (github.com/NVIDIA/nccl issue
// 1455), so four run the ring, whose steps the curves of all-gather and reduce-scatter show. And
// any operation whose bandwidth on eight devices is less than a third of that on two: eight devices
// are then not on one side of the host (PCIe across sockets), and four follow the two.
#pragma once

#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/expected.h"

namespace trainyard {

// Predicted time of a sample, by the device's curves, else by the algorithms' formulas.
Seconds collective_sample_time(const Device& device, const CollectiveSample& sample);

// Replaces the curves that have samples. `progress` is called with the fraction that is done.
Expected<void> fit_collectives(Device& device, const std::vector<CollectiveSample>& samples,
                               const std::function<void(double)>& progress);

}  // namespace trainyard
