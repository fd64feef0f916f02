#include "model/calibration/fit_residual_grid.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cassert>
#include <cmath>

namespace trainyard {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kReweightings = 8;
constexpr double kSlopeShare = 0.1;       // weight of first differences over second differences
constexpr double kLargestExponent = 1.5;  // bound of the exponent that lowers a slow row's weight

// Adds the squared difference Σ factorᵢ · value(atᵢ) of neighbours along an axis to the matrix.
void add_penalty(MatrixXd& matrix, std::span<const Index> at, std::span<const double> factor,
                 double weight) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    for (std::size_t j = 0; j < at.size(); ++j) {
      matrix(at[i], at[j]) += weight * factor[i] * factor[j];
    }
  }
}

void add_smoothness(MatrixXd& matrix, std::span<const std::vector<double>> knots, std::size_t axis,
                    double weight) {
  const auto count = static_cast<Index>(knots[axis].size());
  const auto stride = static_cast<Index>(grid_size(knots.subspan(axis + 1)));
  const Index step = stride == 0 ? 1 : stride;
  for (Index i = 0; i < matrix.rows(); ++i) {
    const Index place = i / step % count;
    if (place + 1 < count) {
      const bool only_two = count == 2;  // no second differences to hold
      add_penalty(matrix, std::array{i, i + step}, std::array{1.0, -1.0},
                  weight * (only_two ? 1 : kSlopeShare));
    }
    if (place + 2 < count) {
      add_penalty(matrix, std::array{i, i + step, i + 2 * step}, std::array{1.0, -2.0, 1.0},
                  weight);
    }
  }
}

MatrixXd penalties(std::span<const std::vector<double>> knots, const ResidualFitOptions& options) {
  const auto size = static_cast<Index>(grid_size(knots));
  MatrixXd matrix = options.ridge * MatrixXd::Identity(size, size);
  for (std::size_t axis = 0; axis < knots.size(); ++axis) {
    add_smoothness(matrix, knots, axis, options.smoothness[axis]);
  }
  return matrix;
}

double row_weight(double error, const ResidualFitOptions& options) {
  const double scaled = error / options.loss_scale;
  const double weight = 1 / std::sqrt(1 + scaled * scaled);
  if (!options.relative_to_measured) return weight;
  return weight * std::exp(-std::clamp(error, -kLargestExponent, kLargestExponent));
}

double value_at(const GridWeights& row, const VectorXd& values) {
  double value = 0;
  for (std::size_t i = 0; i < row.count; ++i) {
    value += row.weight[i] * values[static_cast<Index>(row.corner[i])];
  }
  return value;
}

VectorXd reweighted(const std::vector<GridWeights>& rows, const std::vector<double>& residuals,
                    MatrixXd matrix, const VectorXd& values, const ResidualFitOptions& options) {
  VectorXd right = VectorXd::Zero(values.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const GridWeights& row = rows[r];
    const double weight = row_weight(residuals[r] - value_at(row, values), options);
    for (std::size_t i = 0; i < row.count; ++i) {
      const auto at = static_cast<Index>(row.corner[i]);
      right[at] += weight * row.weight[i] * residuals[r];
      for (std::size_t j = 0; j < row.count; ++j) {
        matrix(at, static_cast<Index>(row.corner[j])) += weight * row.weight[i] * row.weight[j];
      }
    }
  }
  return matrix.ldlt().solve(right);
}

}  // namespace

ResidualGrid fit_residual_grid(std::vector<std::vector<double>> knots,
                               const ResidualSamples& samples, const ResidualFitOptions& options) {
  const std::size_t axes = knots.size();
  assert(options.smoothness.size() == axes && "one smoothness an axis");
  assert(samples.coordinates.size() == axes * samples.residuals.size() && "a point a residual");
  std::vector<GridWeights> rows;
  rows.reserve(samples.residuals.size());
  for (std::size_t r = 0; r < samples.residuals.size(); ++r) {
    rows.push_back(grid_weights(knots, std::span(samples.coordinates).subspan(r * axes, axes)));
  }
  const MatrixXd penalty = penalties(knots, options);
  VectorXd values = VectorXd::Zero(penalty.rows());
  for (int i = 0; i < kReweightings; ++i) {
    values = reweighted(rows, samples.residuals, penalty, values, options);
  }
  std::vector<double> rounded;
  rounded.reserve(static_cast<std::size_t>(values.size()));
  for (const double value : values) rounded.push_back(to_thousandths(value));
  return {std::move(knots), std::move(rounded)};
}

}  // namespace trainyard
