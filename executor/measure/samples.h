// What is measured of a backend's operations on a machine, one at a time and inside whole steps:
// the input of a calibration. Times are medians (executor/measure/timing.h).
#pragma once

#include <functional>
#include <vector>

#include "executor/measure/step_measure.h"
#include "executor/measure/timing.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

struct HostSamples {
  std::vector<GemmSample> gemm;
  std::vector<AttentionSample> attention;
  double attention_backward = 0;  // median of backward over forward time
  std::vector<TrafficSample> traffic;
  BytesPerSecond copy;         // of large arrays, counting bytes read and written
  double sustained_clock = 1;  // speed of products kept up for seconds over their speed in bursts
  StepSamples steps;           // the same operations inside whole steps
  std::vector<MeasuredPoint> points;  // all of the above, one by one
};

struct MeasureLimits {
  Seconds budget{60};
  std::function<void(double fraction)> progress;
  std::function<bool()> interrupted;
};

}  // namespace trainyard
