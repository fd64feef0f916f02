#include "executor/measure/timing.h"

#include <cmath>

#include "model/median.h"

namespace trainyard {
namespace {

constexpr int kFewestRuns = 5, kFewestLateRuns = 2;  // the latter when the budget is spent
constexpr int kMostRuns = 200;
constexpr double kCertainEnough = 0.04;  // half of the 95 % interval, over the median
constexpr double kOutlier = 3;           // median deviations
constexpr double kNormal = 1.4826;       // standard over median deviation, normal distribution

}  // namespace

double seconds_since(TimingClock::time_point begin) {
  return std::chrono::duration<double>(TimingClock::now() - begin).count();
}

Timing timing_of(const std::vector<double>& seconds) {
  const double first = median(seconds);
  std::vector<double> apart;
  apart.reserve(seconds.size());
  for (const double time : seconds) apart.push_back(std::abs(time - first));
  const double spread = kNormal * median(apart);
  std::vector<double> kept;
  kept.reserve(seconds.size());
  for (const double time : seconds) {
    if (std::abs(time - first) <= kOutlier * spread) kept.push_back(time);
  }
  const double error = spread * std::sqrt(M_PI / 2 / static_cast<double>(kept.size()));
  return {Seconds(median(kept)), Seconds(error), static_cast<int>(seconds.size()),
          static_cast<int>(seconds.size() - kept.size())};
}

Timing timed(const std::function<void()>& work, Seconds budget) {
  const auto start = TimingClock::now();
  work();
  const auto once = [&work] {
    const auto begin = TimingClock::now();
    work();
    return Seconds(seconds_since(begin));
  };
  return repeated_timing(once, budget - Seconds(seconds_since(start)));
}

Timing repeated_timing(const std::function<Seconds()>& once, Seconds budget) {
  const auto start = TimingClock::now();
  std::vector<double> times;
  times.reserve(kMostRuns);
  while (static_cast<int>(times.size()) < kMostRuns) {
    times.push_back(once().value());
    const int runs = static_cast<int>(times.size());
    if (runs >= kFewestRuns && timing_of(times).uncertainty() < kCertainEnough) break;
    if (runs >= kFewestLateRuns && seconds_since(start) > budget.value()) break;
  }
  return timing_of(times);
}

}  // namespace trainyard
