// How long the CPU backend's operations take on this machine, one at a time: what a calibration is
// fitted to. Times are medians (executor/cpu/timing.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/cpu/timing.h"
#include "executor/measure/step_measure.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

struct HostSamples {
  std::vector<GemmSample> gemm;
  std::vector<AttentionSample> attention;
  double attention_backward = 0;  // time of its gradient over its own, median
  std::vector<TrafficSample> traffic;
  BytesPerSecond copy;                // of large arrays, read and written
  double sustained_clock = 1;         // pace of products for seconds over their pace when measured
  StepSamples steps;                  // the same operations inside whole steps; none of a device
  std::vector<MeasuredPoint> points;  // all of the above, one by one
};

struct MeasureLimits {
  Seconds budget{60};
  std::function<void(double fraction)> progress;
  std::function<bool()> interrupted;
};
// "AMD EPYC, 2596 MHz, Linux 6.1.0, Eigen 3.4.0, compiler 12.2.0": what a measurement is of.
std::string host_provenance();

// Where the budget does not suffice for all, what is needed for a fit and some of the rest; less
// where the user has had enough.
HostSamples measure_host(const MeasureLimits& limits);

}  // namespace trainyard
