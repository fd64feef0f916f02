// Robust non-linear least squares for a handful of bounded parameters (Levenberg–Marquardt,
// Marquardt 1963): minimises Σ s²·ρ((rᵢ/s)²) with ρ(z) = 2(√(1 + z) − 1), soft L1, so that outliers
// pull like absolute values (Triggs et al. 2000). The Jacobian is numeric; a bound holds a
// parameter while the cost falls beyond it. Deterministic; the best of several starts is the
// caller's to ask for. Meant for tens of parameters and residuals up to 10⁵.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace trainyard {

struct ParameterBounds {
  double least = 0;
  double most = 1;
  // Whether steps are taken in the logarithm: for a positive parameter whose size is unknown.
  // Requires: least > 0.
  bool logarithmic = false;
};

struct LeastSquaresOptions {
  double loss_scale = 0.05;  // s: residuals far beyond it count by their absolute value
  int most_iterations = 100;
  double tolerance = 1e-7;  // relative change of the cost that ends the search
};

struct LeastSquaresFit {
  std::vector<double> parameters;
  double cost = 0;  // of the loss above
};

// Fills `residuals` for `parameters`, which are inside their bounds.
using ResidualFunction =
    std::function<void(std::span<const double> parameters, std::span<double> residuals)>;

// Requires: a start as long as `bounds` (it is moved inside them); finite residuals.
LeastSquaresFit fit_least_squares(const ResidualFunction& residual_function,
                                  std::size_t residual_count,
                                  std::span<const ParameterBounds> bounds,
                                  std::span<const double> start,
                                  const LeastSquaresOptions& options = {});

// The fit of least cost, the first of equals. Requires: one start at least.
LeastSquaresFit fit_least_squares_from(const ResidualFunction& residual_function,
                                       std::size_t residual_count,
                                       std::span<const ParameterBounds> bounds,
                                       const std::vector<std::vector<double>>& starts,
                                       const LeastSquaresOptions& options = {});

// To the four digits that a document shows, so that what is stored is what was fitted.
double four_digits(double value);
void to_four_digits(std::span<double> values);

}  // namespace trainyard
