// Fits a residual grid (model/residual_grid.h) to the residuals of a closed form by penalised least
// squares (P-splines of first degree, Eilers & Marx 1996) with a robust loss. It finds a smooth
// function where there are data, tends to 0 where there are none, and single rows matter little.
// Deterministic. The normal equations are dense: meant for up to about a thousand grid values.
#pragma once

#include <vector>

#include "model/residual_grid.h"

namespace trainyard {

// Samples of ln(measured / form); `coordinates` holds the points one after the other, one
// coordinate for each axis.
struct ResidualSamples {
  std::vector<double> coordinates;
  std::vector<double> residuals;
};

struct ResidualFitOptions {
  std::vector<double> smoothness;  // [axis]: weight of the squared second differences
  double ridge = 0.05;             // weight of each squared value: pulls values to 0
  double loss_scale = 0.08;        // residuals far beyond it count by their absolute value
  // Whether the error to minimise is relative to the measured time, as scores are printed. A row
  // that is slower than its like then counts less than one that is as much faster.
  bool relative_to_measured = false;
};

// Requires: one smoothness for each axis; a point for each residual.
ResidualGrid fit_residual_grid(std::vector<std::vector<double>> knots,
                               const ResidualSamples& samples, const ResidualFitOptions& options);

}  // namespace trainyard
