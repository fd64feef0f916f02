#include "model/calibration/fit_residual_grid.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace trainyard {
namespace {

constexpr int kSide = 40;

// A smooth field over [0, 8]², sampled on a lattice. `spike` is added to every 17th sample.
double field(double x, double y) { return 0.1 * std::sin(x / 2) - 0.02 * y; }

ResidualSamples lattice(double spike) {
  ResidualSamples samples;
  for (int i = 0; i < kSide * kSide; ++i) {
    const double x = 8.0 * (i % kSide) / (kSide - 1);
    const double y = 8.0 * (i / kSide) / (kSide - 1);
    samples.coordinates.insert(samples.coordinates.end(), {x, y});
    samples.residuals.push_back(field(x, y) + (i % 17 == 0 ? spike : 0));
  }
  return samples;
}

const std::vector<std::vector<double>> kKnots = {{0, 1, 2, 3, 4, 5, 6, 7, 8}, {0, 4, 8}};

ResidualGrid fitted(double spike) {
  return fit_residual_grid(kKnots, lattice(spike), {.smoothness = {0.05, 0.05}});
}

double largest_error(const ResidualGrid& grid) {
  double largest = 0;
  for (int i = 0; i < kSide * kSide; ++i) {
    const double x = 0.1 + 7.8 * (i % kSide) / (kSide - 1);
    const double y = 0.1 + 7.8 * (i / kSide) / (kSide - 1);
    largest = std::max(largest, std::abs(residual_at(grid, std::array{x, y}) - field(x, y)));
  }
  return largest;
}

// Linear interpolation between knots one apart misses the sine by at most max|f''|/8 = 0.1/4 · 1²/8
// = 0.003.
TEST(ResidualGridFit, RecoversASmoothField) { EXPECT_LT(largest_error(fitted(0)), 0.006); }

TEST(ResidualGridFit, IsHardlyMovedByRowsThatAreFarOff) {
  EXPECT_LT(largest_error(fitted(2)), 0.015);
}

TEST(ResidualGridFit, LeavesNothingWhereThereAreNoData) {
  const ResidualSamples one{{0, 0}, {0.3}};
  const ResidualGrid grid = fit_residual_grid(kKnots, one, {.smoothness = {0, 0}, .ridge = 0.01});
  EXPECT_NEAR(residual_at(grid, std::array{8.0, 8.0}), 0, 1e-9);
  EXPECT_GT(residual_at(grid, std::array{0.0, 0.0}), 0.2);
}

TEST(ResidualGridFit, GivesTheSameGridEveryTime) { EXPECT_EQ(fitted(0.5), fitted(0.5)); }

// Three rows of one shape, with residuals 0, 0 and ln 4. Minimising errors relative to the measured
// time gives the faster rows more weight than minimising errors of the logarithm does.
TEST(ResidualGridFit, LeansToFasterRowsForErrorsRelativeToTheMeasured) {
  const ResidualSamples rows{{0, 0, 0}, {0, 0, std::log(4.0)}};
  ResidualFitOptions options{.smoothness = {0}, .ridge = 1e-9, .loss_scale = 10};
  const double plain = residual_at(fit_residual_grid({{0, 1}}, rows, options), std::array{0.0});
  options.relative_to_measured = true;
  const double relative = residual_at(fit_residual_grid({{0, 1}}, rows, options), std::array{0.0});
  EXPECT_NEAR(plain, std::log(4.0) / 3, 1e-2);
  EXPECT_LT(relative, plain / 2);
}

}  // namespace
}  // namespace trainyard
