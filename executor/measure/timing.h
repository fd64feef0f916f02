// Repeated times of one piece of work: their median, how certain it is, and which were left out. A
// time is an outlier beyond three median deviations (scaled as for a normal distribution).
// Measuring ends when the 95 % interval of the median is within ±4 % or the budget is spent; the
// interval assumes normally distributed times.
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
  int outliers = 0;  // of the runs, left out of the median

  // Half of the 95 % interval as a share of the median.
  double uncertainty() const { return 1.96 * deviation / median; }
};
using TimingClock = std::chrono::steady_clock;
double seconds_since(TimingClock::time_point begin);

Timing timing_of(const std::vector<double>& seconds);

Timing timed(const std::function<void()>& work, Seconds budget);
// The same for work that measures itself: `once` returns the time of one run.
Timing repeated_timing(const std::function<Seconds()>& once, Seconds budget);

// What was measured, and how well.
struct MeasuredPoint {
  std::string family;  // "GEMM"
  std::string what;    // "forward 64x512x192"
  Timing timing;
};

}  // namespace trainyard
