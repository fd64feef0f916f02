// From measured operations of a backend to a device as the cost model knows it. Fits with the code
// that fits tables of kernels (model/calibration). On the host a rank is one thread, so the device
// has one multiprocessor.
#pragma once

#include "executor/cpu/measure.h"
#include "model/cluster/device.h"

namespace trainyard {

// What is known of it without measuring.
struct DeviceFrame {
  Bytes memory;
  int multiprocessors = 1;
  BytesPerSecond link;  // where no collectives were measured; 0: as fast as a copy
};
Expected<Device> fitted_device(const HostSamples& samples,
                               const std::vector<CollectiveSample>& collectives,
                               const DeviceFrame& frame);

}  // namespace trainyard
