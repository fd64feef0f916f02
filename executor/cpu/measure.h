// How long the CPU backend's operations take on this machine, one at a time: what a calibration is
// fitted to. A time is the median of repeated runs, outliers left out (beyond three median
// deviations), and enough when its standard error is 2 % or its share of the budget is spent.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/cpu/transport.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

struct Timing {
  Seconds median;
  Seconds deviation;  // standard error of the median
  int runs = 0;
};
Timing timed(const std::function<void()>& work, Seconds budget);
// Of times that `once` takes itself.
Timing repeated_timing(const std::function<Seconds()>& once, Seconds budget);

// A memory-bound operation: traffic as the operators count it.
struct TrafficSample {
  Bytes traffic;
  Seconds time;
};

struct HostSamples {
  std::vector<GemmSample> gemm;
  std::vector<AttentionSample> attention;
  double attention_backward = 0;  // time of its gradient over its own, median
  std::vector<TrafficSample> traffic;
  BytesPerSecond copy;  // of large arrays, read and written
};

struct MeasureLimits {
  Seconds budget{60};
  std::function<void(double fraction)> progress;
  std::function<bool()> interrupted;
};
// "Eigen 3.4.0, GCC 12.2.0": what the arithmetic was built with.
std::string built_with();

// Less than everything where the user has had enough.
HostSamples measure_host(const MeasureLimits& limits);

// Collectives among all ranks of `transport`, by size; every rank gets the slowest rank's times.
Expected<std::vector<CollectiveSample>> measure_collectives(Transport& transport, Seconds budget);

}  // namespace trainyard
