#include "model/calibration/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard {
namespace {

constexpr std::size_t kPoints = 40;

// y = a·exp(−b·x) at x = 0, 0.1, …; `spoilt` of the points are ten times too high.
ResidualFunction decay(double a, double b, std::size_t spoilt) {
  return [=](std::span<const double> p, std::span<double> r) {
    for (std::size_t i = 0; i < r.size(); ++i) {
      const double x = 0.1 * static_cast<double>(i);
      const double y = a * std::exp(-b * x) * (i % 13 < spoilt ? 10 : 1);
      r[i] = std::log(p[0] * std::exp(-p[1] * x) / y);
    }
  };
}

TEST(LeastSquares, RecoversTheParametersOfExactData) {
  const std::vector<ParameterBounds> bounds = {{0.1, 100, true}, {0.01, 10, true}};
  const LeastSquaresFit fit =
      fit_least_squares(decay(3, 0.7, 0), kPoints, bounds, std::vector<double>{50, 5});
  EXPECT_NEAR(fit.parameters[0], 3, 1e-6);
  EXPECT_NEAR(fit.parameters[1], 0.7, 1e-6);
  EXPECT_LT(fit.cost, 1e-12);
}

TEST(LeastSquares, BarelyMovesForOutliers) {
  const std::vector<ParameterBounds> bounds = {{0.1, 100, true}, {0.01, 10, true}};
  const LeastSquaresFit fit =
      fit_least_squares(decay(3, 0.7, 1), kPoints, bounds, std::vector<double>{1, 1});
  EXPECT_NEAR(fit.parameters[0], 3, 0.03);  // plain squares: 3 · 10^(4/40) and more
  EXPECT_NEAR(fit.parameters[1], 0.7, 0.01);
}

// min (x − 5)² + (x·y − 6)² with x ≤ 2: x = 2, y = 3.
TEST(LeastSquares, StopsAtABoundAndGoesOnAlongIt) {
  const ResidualFunction f = [](std::span<const double> p, std::span<double> r) {
    r[0] = p[0] - 5;
    r[1] = p[0] * p[1] - 6;
  };
  const std::vector<ParameterBounds> bounds = {{0, 2}, {-10, 10}};
  const auto fit = fit_least_squares(f, 2, bounds, std::vector<double>{0.5, 0},
                                     {.loss_scale = 100, .tolerance = 1e-14});
  EXPECT_EQ(fit.parameters[0], 2);
  EXPECT_NEAR(fit.parameters[1], 3, 1e-6);
}

TEST(LeastSquares, TakesTheBestOfItsStarts) {
  const ResidualFunction f = [](std::span<const double> p, std::span<double> r) {
    r[0] = (p[0] - 1) * (p[0] + 2) + 0.3 * p[0];  // roots 1.2… and −2.5…; between them a hill
    r[1] = 0.1 * (p[0] - 1.5);
  };
  const std::vector<ParameterBounds> bounds = {{-4, 4}};
  const auto low = fit_least_squares(f, 2, bounds, std::vector<double>{-3});
  const auto best = fit_least_squares_from(f, 2, bounds, {{-3.0}, {3.0}});
  EXPECT_LT(best.cost, low.cost);
  EXPECT_GT(best.parameters[0], 0);
}

TEST(LeastSquares, GivesTheSameBitsTwice) {
  const std::vector<ParameterBounds> bounds = {{0.1, 100, true}, {0.01, 10, true}};
  const std::vector<double> start = {20, 2};
  const auto once = fit_least_squares(decay(3, 0.7, 2), kPoints, bounds, start);
  const auto again = fit_least_squares(decay(3, 0.7, 2), kPoints, bounds, start);
  EXPECT_EQ(once.parameters, again.parameters);
}

}  // namespace
}  // namespace trainyard
