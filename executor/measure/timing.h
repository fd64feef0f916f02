// Repeated times of one piece of work and what they say: the median, how certain it is, and what
// was left out. A time is an outlier beyond three median deviations (scaled as of a normal
// distribution); enough was measured when the 95 % interval of the median is within ±4 % or the
// budget is spent. The interval is that of normally distributed times.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "model/units.h"

namespace trainyard {

struct Timing {
  Seconds median;
  Seconds deviation;  // standard error of the median
  int runs = 0;
  int outliers = 0;  // of them, left out

  // Half of the 95 % interval, over the median.
  double uncertainty() const { return 1.96 * deviation / median; }
};
using TimingClock = std::chrono::steady_clock;
double seconds_since(TimingClock::time_point begin);

Timing timing_of(const std::vector<double>& seconds);

Timing timed(const std::function<void()>& work, Seconds budget);
// Of times that `once` takes itself.
Timing repeated_timing(const std::function<Seconds()>& once, Seconds budget);

// What was measured, and how well.
struct MeasuredPoint {
  std::string family;  // "GEMM"
  std::string what;    // "forward 64x512x192"
  Timing timing;
};

}  // namespace trainyard
