#include "model/calibration/least_squares.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <string>

namespace trainyard {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kFirstDamping = 1e-3;
constexpr double kLeastDamping = 1e-12;
constexpr double kMostDamping = 1e12;

// The problem in the coordinates of its steps: logarithms of the parameters that ask for it.
class Problem {
 public:
  Problem(const ResidualFunction& function, std::size_t count,
          std::span<const ParameterBounds> bounds, double loss_scale)
      : function_(function), count_(count), bounds_(bounds), scale_(loss_scale) {}

  Index size() const { return static_cast<Index>(bounds_.size()); }
  Index rows() const { return static_cast<Index>(count_); }
  double least(Index i) const { return coordinate(i, bound(i).least); }
  double most(Index i) const { return coordinate(i, bound(i).most); }

  VectorXd coordinates(std::span<const double> parameters) const {
    VectorXd x(size());
    for (Index i = 0; i < size(); ++i) {
      const double inside =
          std::clamp(parameters[static_cast<std::size_t>(i)], bound(i).least, bound(i).most);
      x[i] = coordinate(i, inside);
    }
    return x;
  }
  std::vector<double> parameters(const VectorXd& x) const {
    std::vector<double> values(bounds_.size());
    for (Index i = 0; i < size(); ++i) {
      const double value = bound(i).logarithmic ? std::exp(x[i]) : x[i];
      values[static_cast<std::size_t>(i)] = std::clamp(value, bound(i).least, bound(i).most);
    }
    return values;
  }
  VectorXd residuals(const VectorXd& x) const {
    VectorXd r(rows());
    function_(parameters(x), {r.data(), count_});
    return r;
  }
  double cost(const VectorXd& r) const {
    const double s2 = scale_ * scale_;
    return (2 * s2 * ((1 + r.array().square() / s2).sqrt() - 1)).sum();
  }
  // √ρ′: the factor of each row of the Gauss–Newton system.
  VectorXd row_weights(const VectorXd& r) const {
    return (1 + r.array().square() / (scale_ * scale_)).pow(-0.25);
  }
  MatrixXd jacobian(const VectorXd& x, const VectorXd& r) const {
    MatrixXd jacobian(rows(), size());
    for (Index i = 0; i < size(); ++i) {
      const double range = most(i) - least(i);
      double step = 1e-4 * (bound(i).logarithmic ? std::min(1.0, range) : range);
      if (x[i] + step > most(i)) step = -step;
      VectorXd beside = x;
      beside[i] += step;
      jacobian.col(i) = (residuals(beside) - r) / step;
    }
    return jacobian;
  }

 private:
  const ParameterBounds& bound(Index i) const { return bounds_[static_cast<std::size_t>(i)]; }
  double coordinate(Index i, double value) const {
    return bound(i).logarithmic ? std::log(value) : value;
  }

  const ResidualFunction& function_;
  std::size_t count_;
  std::span<const ParameterBounds> bounds_;
  double scale_;
};

struct NormalEquations {
  MatrixXd matrix;
  VectorXd gradient;
};

NormalEquations normal_equations(const Problem& problem, const VectorXd& x, const VectorXd& r) {
  const VectorXd weights = problem.row_weights(r);
  const MatrixXd rows = weights.asDiagonal() * problem.jacobian(x, r);
  NormalEquations equations{rows.transpose() * rows, rows.transpose() * weights.cwiseProduct(r)};
  for (Index i = 0; i < problem.size(); ++i) {  // a bound that the cost falls beyond holds
    const double slope = equations.gradient[i];
    const bool held = (x[i] <= problem.least(i) && slope > 0) ||
                      (x[i] >= problem.most(i) && slope < 0) || equations.matrix(i, i) <= 0;
    if (!held) continue;
    equations.matrix.row(i).setZero();
    equations.matrix.col(i).setZero();
    equations.matrix(i, i) = 1;
    equations.gradient[i] = 0;
  }
  return equations;
}

VectorXd step_to(const Problem& problem, const VectorXd& x, const NormalEquations& equations,
                 double damping) {
  MatrixXd damped = equations.matrix;
  damped.diagonal() *= 1 + damping;
  VectorXd next = x - damped.ldlt().solve(equations.gradient);
  for (Index i = 0; i < problem.size(); ++i) {
    next[i] = std::clamp(next[i], problem.least(i), problem.most(i));
  }
  return next;
}

struct Descent {
  VectorXd x, r;
  double cost = 0;
};

// Takes the first step that lowers the cost; lowers the damping after it. False: no step does.
bool improve(const Problem& problem, Descent& state, double& damping) {
  const NormalEquations equations = normal_equations(problem, state.x, state.r);
  for (; damping <= kMostDamping; damping *= 4) {
    VectorXd x = step_to(problem, state.x, equations, damping);
    VectorXd r = problem.residuals(x);
    const double cost = problem.cost(r);
    if (!(cost < state.cost)) continue;
    state = {std::move(x), std::move(r), cost};
    damping = std::max(damping / 6, kLeastDamping);
    return true;
  }
  return false;
}

}  // namespace

LeastSquaresFit fit_least_squares(const ResidualFunction& residual_function,
                                  std::size_t residual_count,
                                  std::span<const ParameterBounds> bounds,
                                  std::span<const double> start,
                                  const LeastSquaresOptions& options) {
  assert(start.size() == bounds.size() && "a start for every parameter");
  const Problem problem(residual_function, residual_count, bounds, options.loss_scale);
  Descent state{problem.coordinates(start), {}, 0};
  state.r = problem.residuals(state.x);
  state.cost = problem.cost(state.r);
  double damping = kFirstDamping;
  for (int i = 0; i < options.most_iterations; ++i) {
    const double before = state.cost;
    if (!improve(problem, state, damping) || before - state.cost <= options.tolerance * before) {
      break;
    }
  }
  return {problem.parameters(state.x), state.cost};
}

LeastSquaresFit fit_least_squares_from(const ResidualFunction& residual_function,
                                       std::size_t residual_count,
                                       std::span<const ParameterBounds> bounds,
                                       const std::vector<std::vector<double>>& starts,
                                       const LeastSquaresOptions& options) {
  assert(!starts.empty() && "one start at least");
  LeastSquaresFit best;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    LeastSquaresFit fit =
        fit_least_squares(residual_function, residual_count, bounds, starts[i], options);
    if (i == 0 || fit.cost < best.cost) best = std::move(fit);
  }
  return best;
}

double four_digits(double value) {
  const std::string digits = fmt::format("{:.3e}", value);
  double rounded = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
  return rounded;
}

void to_four_digits(std::span<double> values) {
  for (double& value : values) value = four_digits(value);
}

}  // namespace trainyard
