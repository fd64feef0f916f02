#include "model/residual_grid.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <span>

namespace trainyard {
namespace {

// The plane 0.1·x + 0.2·y at the knots, which multilinear interpolation reproduces exactly.
ResidualGrid plane() {
  ResidualGrid grid{{{0, 2, 3}, {-1, 1}}, {}};
  for (const double x : grid.knots[0]) {
    for (const double y : grid.knots[1]) grid.values.push_back(0.1 * x + 0.2 * y);
  }
  return grid;
}

double at(const ResidualGrid& grid, double x, double y) {
  return residual_at(grid, std::array{x, y});
}

TEST(ResidualGrid, IsStraightBetweenItsKnots) {
  EXPECT_NEAR(at(plane(), 2, 1), 0.4, 1e-15);
  EXPECT_NEAR(at(plane(), 0.5, -0.5), 0.05 - 0.1, 1e-15);
  EXPECT_NEAR(at(plane(), 2.7, 0.3), 0.27 + 0.06, 1e-15);
}

// Knots that grow wider, so that the cell is not where even spacing would place it.
TEST(ResidualGrid, FindsTheCellOfUnevenKnots) {
  const ResidualGrid grid{{{0, 1, 2, 3, 100, 1000}}, {0, 1, 2, 3, 100, 1000}};
  for (const double x : {0.0, 0.5, 1.0, 2.5, 3.0, 42.0, 100.0, 500.0, 1000.0}) {
    EXPECT_NEAR(residual_at(grid, std::array{x}), x, 1e-12);
  }
}

TEST(ResidualGrid, FadesToNothingOutsideItsKnots) {
  const double edge = 0.3 + 0.2;
  EXPECT_NEAR(at(plane(), 3, 1), edge, 1e-15);
  EXPECT_NEAR(at(plane(), 3 + kResidualReach / 2, 1), edge / 2, 1e-15);
  EXPECT_NEAR(at(plane(), 3 + kResidualReach / 2, 1 + kResidualReach / 2), edge / 4, 1e-15);
  EXPECT_EQ(at(plane(), 3 + kResidualReach, 1), 0);
  EXPECT_EQ(at(plane(), 100, 1), 0);
}

TEST(ResidualGrid, CorrectsNothingWhenEmpty) { EXPECT_EQ(residual_at({}, {}), 0); }

TEST(ResidualGrid, GivesWeightsThatSumToOne) {
  const auto grid = plane();
  const GridWeights weights = grid_weights(grid.knots, std::array{1.3, 5.0});
  double sum = 0;
  for (std::size_t i = 0; i < weights.count; ++i) sum += weights.weight[i];
  EXPECT_EQ(weights.count, 4U);
  EXPECT_NEAR(sum, 1, 1e-15);
}

// Fits use the weights of the corners; their weighted sum is a second way to the same value.
TEST(ResidualGrid, IsTheWeightedSumOfItsCorners) {
  ResidualGrid grid{{{0, 1, 3}, {-1, 1}, {2, 5, 6, 9}, {0, 2}}, {}};
  for (std::size_t i = 0; i < grid_size(grid.knots); ++i) {
    grid.values.push_back(std::sin(static_cast<double>(i)));
  }
  const std::array<double, 4> inside{2.2, 0.25, 5.75, 1.5};
  const std::array<double, 4> outside{3.5, -1.25, 1, 0.5};
  for (std::size_t axes = 1; axes <= grid.knots.size(); ++axes) {
    const ResidualGrid part{{grid.knots.begin(), grid.knots.begin() + static_cast<int>(axes)},
                            grid.values};
    for (const auto& point : {inside, outside}) {
      const std::span at_axes(point.data(), axes);
      const GridWeights weights = grid_weights(part.knots, at_axes);
      double sum = 0;
      for (std::size_t i = 0; i < weights.count; ++i) {
        sum += weights.weight[i] * part.values[weights.corner[i]];
      }
      EXPECT_NEAR(residual_at(part, at_axes), sum * weights.fade, 1e-15) << axes << " axes";
    }
  }
}

}  // namespace
}  // namespace trainyard
