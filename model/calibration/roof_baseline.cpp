#include "model/calibration/roof_baseline.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <vector>

namespace trainyard {
namespace {

struct Weighted {
  double value = 0, weight = 0;
};

// A value such that half of the weight is at or below it. Requires: not empty, positive weights.
// Reorders the rows.
double weighted_median(std::span<Weighted> rows) {
  double half = 0;
  for (const Weighted& row : rows) half += row.weight / 2;
  while (rows.size() > 1) {
    const std::size_t middle = rows.size() / 2;
    std::ranges::nth_element(rows, rows.begin() + static_cast<std::ptrdiff_t>(middle), {},
                             &Weighted::value);
    double below = 0;
    for (const Weighted& row : rows.first(middle)) below += row.weight;
    if (below >= half) {
      rows = rows.first(middle);
    } else {
      half -= below;
      rows = rows.subspan(middle);
    }
  }
  return rows.front().value;
}

// The best slowdown s for a given launch. The error of a row, |launch + s · ideal − measured| /
// measured, is ideal / measured times the distance of s from (measured − launch) / ideal, so the
// best s is the weighted median of these.
RoofBaseline best_for_launch(Seconds launch, std::span<const RoofSample> samples,
                             std::vector<Weighted>& scratch) {
  scratch.clear();
  for (const RoofSample& sample : samples) {
    scratch.push_back({(sample.measured - launch) / sample.ideal, sample.ideal / sample.measured});
  }
  return {launch, std::max(0.0, weighted_median(scratch))};
}

}  // namespace

double mean_error(const RoofBaseline& baseline, std::span<const RoofSample> samples) {
  double sum = 0;
  for (const RoofSample& sample : samples) {
    sum += std::abs(baseline.time(sample.ideal) / sample.measured - 1);
  }
  return sum / static_cast<double>(samples.size());
}

// The error is convex in launch and fraction, so its minimum over the fraction is convex in the
// launch: golden sections (Kiefer 1953) from no launch to the longest kernel find the best one.
RoofBaseline fit_roof_baseline(std::span<const RoofSample> samples) {
  assert(!samples.empty());
  constexpr int kSections = 50;  // to 10⁻¹⁰ of the longest kernel
  constexpr double kGolden = 1 / std::numbers::phi;
  std::vector<Weighted> scratch;
  scratch.reserve(samples.size());
  const auto error_at = [&](Seconds launch) {
    return mean_error(best_for_launch(launch, samples, scratch), samples);
  };
  Seconds least(0);
  Seconds most = std::ranges::max(samples, {}, [](const RoofSample& s) {
                   return s.measured.value();
                 }).measured;
  Seconds low = most - kGolden * most, high = kGolden * most;
  double error_low = error_at(low), error_high = error_at(high);
  for (int i = 0; i < kSections; ++i) {
    if (error_low <= error_high) {
      most = high;
      high = low;
      error_high = error_low;
      low = most - kGolden * (most - least);
      error_low = error_at(low);
    } else {
      least = low;
      low = high;
      error_low = error_high;
      high = least + kGolden * (most - least);
      error_high = error_at(high);
    }
  }
  // The sections only approach the end of their range where there is no launch at all.
  const RoofBaseline none = best_for_launch(Seconds(0), samples, scratch);
  const RoofBaseline found = best_for_launch(low, samples, scratch);
  return mean_error(none, samples) <= mean_error(found, samples) ? none : found;
}

}  // namespace trainyard
