// The baseline that kernel models are compared with: a launch time plus one attainable fraction of
// the datasheet's roofs for all kernels. It is fitted to the rows that it is scored on, which
// flatters it. Deterministic.
#pragma once

#include <span>

#include "model/units.h"

namespace trainyard {

struct RoofSample {
  Seconds measured;
  Seconds ideal;  // the time that the roofs alone allow
};

struct RoofBaseline {
  Seconds launch;
  double slowdown = 0;  // 1 / the attainable fraction

  Seconds time(Seconds ideal) const { return launch + slowdown * ideal; }
};

// The mean of |time / measured − 1|. Requires: not empty, positive measurements.
double mean_error(const RoofBaseline& baseline, std::span<const RoofSample> samples);

// The launch time and the fraction with the least mean_error, neither negative; the fraction may
// exceed 1. Errors are absolute, so that single rows matter little. Requires: as mean_error;
// positive ideals.
RoofBaseline fit_roof_baseline(std::span<const RoofSample> samples);

}  // namespace trainyard
