// From measured operations of the CPU backend to a device as the cost model knows it. Fits with the
// code that fits tables of kernels (model/calibration); a rank is one thread, so the device has one
// multiprocessor.
#pragma once

#include "executor/cpu/measure.h"
#include "model/cluster/device.h"

namespace trainyard {

Expected<Device> fitted_host(const HostSamples& samples,
                             const std::vector<CollectiveSample>& collectives, Bytes memory);

}  // namespace trainyard
