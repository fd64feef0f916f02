// The correction of a closed form by measurements: ln(measured / form) as a smooth function of the
// logarithms of a shape. It is stored at the knots of a coarse grid and interpolated linearly along
// each axis. Outside the knots the value at the edge fades linearly to 0 within kResidualReach
// units of an axis (octaves where the coordinates are log₂), so that far from the measurements only
// the form counts. An empty grid corrects nothing.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace trainyard {

inline constexpr std::size_t kMostResidualAxes = 4;
inline constexpr double kResidualReach = 2;

struct ResidualGrid {
  std::vector<std::vector<double>> knots;  // [axis], ascending, at least two for each axis
  std::vector<double> values;              // at the knots; the last axis runs fastest

  bool empty() const { return values.empty(); }
  friend bool operator==(const ResidualGrid&, const ResidualGrid&) = default;
};

// The number of values that a grid with these knots has.
std::size_t grid_size(std::span<const std::vector<double>> knots);

// The corners of the cell that contains a point, as indices of ResidualGrid::values, with their
// weights, which sum to 1. A point outside the knots is moved to the edge first.
struct GridWeights {
  std::array<std::size_t, std::size_t{1} << kMostResidualAxes> corner{};
  std::array<double, std::size_t{1} << kMostResidualAxes> weight{};
  std::size_t count = 0;
  double fade = 1;  // 1 inside the knots, 0 beyond the reach
};
// Requires: as many coordinates as axes, at most kMostResidualAxes.
GridWeights grid_weights(std::span<const std::vector<double>> knots, std::span<const double> point);

// Rounds a fitted value to a thousandth, far below the scatter between rows of one shape.
double to_thousandths(double value);

// ln(measured / form) at `point`; 0 for an empty grid. Allocates nothing.
double residual_at(const ResidualGrid& grid, std::span<const double> point);

}  // namespace trainyard
