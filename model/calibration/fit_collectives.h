// Fits a device's collectives inside one NVLink domain to measured curves: latency, bandwidth and
// the √S term of each operation and number of devices (handbook §6), then a smooth residual over
// the size that leaves time rising with it. A row twice off what its neighbours allow is left
// out. Deterministic.
//
// Two curves at four devices are derived, where 2 and 8 are measured and 4 is not. The all-reduce:
// NCCL reduces in the switch only among more than four (github.com/NVIDIA/nccl issue 1455), so four
// run the ring whose steps the all-gather and the reduce-scatter show. And where eight attain less
// than a third of what two do, eight are not on one side of the host (PCIe across sockets): four
// follow the two.
#pragma once

#include <functional>
#include <vector>

#include "model/calibration/kernel_samples.h"
#include "model/cluster/device.h"
#include "model/expected.h"

namespace trainyard {

// Time among the devices of one domain by the device's curves, else by the algorithms' formulas.
Seconds collective_sample_time(const Device& device, const CollectiveSample& sample);

// Replaces the curves of the operations that have samples. `progress` is called with the fraction
// done.
Expected<void> fit_collectives(Device& device, const std::vector<CollectiveSample>& samples,
                               const std::function<void(double)>& progress);

}  // namespace trainyard
