// Fits a residual grid (model/residual_grid.h) to what a closed form leaves: penalised least
// squares (P-splines of first degree, Eilers & Marx 1996) with a robust loss, so that a smooth
// function is found where there are data, nothing where there are none, and single rows do not
// matter. Deterministic. The normal equations are dense: meant for up to about a thousand values.
#pragma once

#include <vector>

#include "model/residual_grid.h"

namespace trainyard {

// ln(measured / form) at points of `axes` coordinates each, one after the other.
struct ResidualSamples {
  std::vector<double> coordinates;
  std::vector<double> residuals;
};

struct ResidualFitOptions {
  std::vector<double> smoothness;  // an axis each: weight of the squared second differences
  double ridge = 0.05;             // pull of every value to nothing
  double loss_scale = 0.08;        // residuals far beyond it count by their absolute value
  // Whether the error that counts is relative to the measured time (what scores print): then a row
  // that is slower than its like pulls less than one that is as much faster.
  bool relative_to_measured = false;
};

// Requires: one smoothness an axis; coordinates for every residual.
ResidualGrid fit_residual_grid(std::vector<std::vector<double>> knots,
                               const ResidualSamples& samples, const ResidualFitOptions& options);

}  // namespace trainyard
