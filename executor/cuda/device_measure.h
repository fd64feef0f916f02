// How long the CUDA backend's operations take on the first device, one at a time, by events: the
// input of a calibration. Statistics and limits are those of executor/measure/samples.h.
#pragma once

#include "executor/measure/samples.h"

namespace trainyard {

struct MeasuredDevice {
  HostSamples samples;
  Bytes memory;
  int multiprocessors = 1;
  BytesPerSecond link;  // copies from the host's memory
  int compute_major = 0, compute_minor = 0;
};
// The error names the call that failed. Requires: there is a device.
Expected<MeasuredDevice> measure_device(const MeasureLimits& limits);

}  // namespace trainyard
