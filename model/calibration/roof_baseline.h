// The baseline that models of kernels are shown beside: a launch, then one attainable fraction of
// the datasheet's roofs for all of them. Fitted to the rows that it is scored on, so it is
// flattered. Deterministic.
#pragma once

#include <span>

#include "model/units.h"

namespace trainyard {

struct RoofSample {
  Seconds measured;
  Seconds ideal;  // what the roofs alone allow
};

struct RoofBaseline {
  Seconds launch;
  double slowdown = 0;  // 1 / the attainable fraction

  Seconds time(Seconds ideal) const { return launch + slowdown * ideal; }
};

// The mean of |time / measured − 1|. Requires: not empty, positive measurements.
double mean_error(const RoofBaseline& baseline, std::span<const RoofSample> samples);

// The launch and the fraction with the least mean_error, neither negative; the fraction may be
// above
// 1. Absolute errors, so that single rows do not matter. Requires: as mean_error; positive ideals.
RoofBaseline fit_roof_baseline(std::span<const RoofSample> samples);

}  // namespace trainyard
