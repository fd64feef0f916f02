// What is left between a closed form and measurements, as a smooth function of the logarithms of a
// shape: values on a coarse grid, straight between its knots along each axis (multilinear). A value
// is ln(measured / form). Outside the knots the value of the edge fades to nothing within
// kResidualReach of an axis' unit (octaves where coordinates are log₂), so that far away only the
// form speaks. An empty grid corrects nothing.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace trainyard {

inline constexpr std::size_t kMostResidualAxes = 4;
inline constexpr double kResidualReach = 2;

struct ResidualGrid {
  std::vector<std::vector<double>> knots;  // an axis each, ascending, two or more
  std::vector<double> values;              // the last axis runs fastest

  bool empty() const { return values.empty(); }
  friend bool operator==(const ResidualGrid&, const ResidualGrid&) = default;
};

// The number of values that a grid with these knots has.
std::size_t grid_size(std::span<const std::vector<double>> knots);

// The corners of the cell that a point falls into (moved to the edge from outside), and their
// weights, which sum to 1.
struct GridWeights {
  std::array<std::size_t, std::size_t{1} << kMostResidualAxes> corner{};
  std::array<double, std::size_t{1} << kMostResidualAxes> weight{};
  std::size_t count = 0;
  double fade = 1;  // 1 inside the knots, 0 beyond the reach
};
// Requires: as many coordinates as axes, at most kMostResidualAxes.
GridWeights grid_weights(std::span<const std::vector<double>> knots, std::span<const double> point);

// Fitted values are kept to a thousandth, far below what rows of one shape differ by.
double to_thousandths(double value);

// 0 for an empty grid. Allocates nothing.
double residual_at(const ResidualGrid& grid, std::span<const double> point);

}  // namespace trainyard
