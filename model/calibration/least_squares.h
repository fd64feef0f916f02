// Robust non-linear least squares for a handful of bounded parameters (Levenberg–Marquardt,
// Marquardt 1963). Minimises Σ s²·ρ((rᵢ/s)²) with the soft L1 loss ρ(z) = 2(√(1 + z) − 1), so that
// outliers pull like absolute values (Triggs et al. 2000). The Jacobian is numeric. A parameter
// stays at a bound as long as the cost falls beyond it. Deterministic; the caller may ask for the
// best of several starts. Meant for tens of parameters and up to 10⁵ residuals.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace trainyard {

struct ParameterBounds {
  double least = 0;
  double most = 1;
  // Whether steps are taken in the logarithm of the parameter: for a positive one whose order of
  // magnitude is unknown. Requires: least > 0.
  bool logarithmic = false;
};

struct LeastSquaresOptions {
  double loss_scale = 0.05;  // s: residuals far beyond it count by their absolute value
  int most_iterations = 100;
  double tolerance = 1e-7;  // relative change of the cost that ends the search
};

struct LeastSquaresFit {
  std::vector<double> parameters;
  double cost = 0;  // the minimised sum
};

// Fills `residuals` for `parameters`, which are inside their bounds.
using ResidualFunction =
    std::function<void(std::span<const double> parameters, std::span<double> residuals)>;

// Requires: a start value for each parameter (moved inside its bounds); finite residuals.
LeastSquaresFit fit_least_squares(const ResidualFunction& residual_function,
                                  std::size_t residual_count,
                                  std::span<const ParameterBounds> bounds,
                                  std::span<const double> start,
                                  const LeastSquaresOptions& options = {});

// The fit of least cost over several starts, the first of equals. Requires: at least one start.
LeastSquaresFit fit_least_squares_from(const ResidualFunction& residual_function,
                                       std::size_t residual_count,
                                       std::span<const ParameterBounds> bounds,
                                       const std::vector<std::vector<double>>& starts,
                                       const LeastSquaresOptions& options = {});

// Rounds to the four digits that a document shows, so that what is stored is what was fitted.
double four_digits(double value);
void to_four_digits(std::span<double> values);

}  // namespace trainyard
