#include "model/residual_grid.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace trainyard {
namespace {

// Where a coordinate lies on its axis.
struct AxisPlace {
  std::size_t below = 0;
  double share = 0;  // of the knot above
  double fade = 1;
};

AxisPlace place_on(const std::vector<double>& knots, double coordinate) {
  const double inside = std::clamp(coordinate, knots.front(), knots.back());
  const auto cells = static_cast<std::ptrdiff_t>(knots.size()) - 1;
  // Where knots a unit apart have it; from there to where these do.
  const double unit = std::min(inside - knots.front(), static_cast<double>(cells - 1));
  auto low = knots.begin() + static_cast<std::ptrdiff_t>(unit);
  while (low != knots.begin() && inside < *low) --low;
  while (low + 2 != knots.end() && inside >= low[1]) ++low;
  return {.below = static_cast<std::size_t>(low - knots.begin()),
          .share = (inside - *low) / (low[1] - *low),
          .fade = std::max(0.0, 1 - std::abs(coordinate - inside) / kResidualReach)};
}

}  // namespace

std::size_t grid_size(std::span<const std::vector<double>> knots) {
  if (knots.empty()) return 0;
  std::size_t size = 1;
  for (const auto& axis : knots) size *= axis.size();
  return size;
}

GridWeights grid_weights(std::span<const std::vector<double>> knots,
                         std::span<const double> point) {
  assert(point.size() == knots.size() && point.size() <= kMostResidualAxes &&
         "a coordinate for every axis");
  GridWeights weights;
  weights.weight[0] = 1;
  weights.count = 1;
  for (std::size_t axis = 0; axis < knots.size(); ++axis) {
    const AxisPlace place = place_on(knots[axis], point[axis]);
    weights.fade *= place.fade;
    for (std::size_t i = 0; i < weights.count; ++i) {
      const std::size_t upper = weights.count + i;
      const std::size_t row = weights.corner[i] * knots[axis].size() + place.below;
      weights.corner[i] = row;
      weights.corner[upper] = row + 1;
      weights.weight[upper] = weights.weight[i] * place.share;
      weights.weight[i] *= 1 - place.share;
    }
    weights.count *= 2;
  }
  return weights;
}

double to_thousandths(double value) { return std::round(value * 1e3) / 1e3; }

namespace {

// Straight along the last `Left` axes, in the row that the axes before have led to.
template <std::size_t Left>
double value_between(const ResidualGrid& grid, const AxisPlace* places, std::size_t row) {
  const std::size_t first = row * (grid.knots.end() - Left)->size() + places->below;
  double low = 0;
  double high = 0;
  if constexpr (Left == 1) {
    low = grid.values[first];
    high = grid.values[first + 1];
  } else {
    low = value_between<Left - 1>(grid, places + 1, first);
    high = value_between<Left - 1>(grid, places + 1, first + 1);
  }
  return low + (high - low) * places->share;
}

template <std::size_t Axes>
double residual_over(const ResidualGrid& grid, std::span<const double> point) {
  std::array<AxisPlace, Axes> places;
  double fade = 1;
  for (std::size_t axis = 0; axis < Axes; ++axis) {
    places[axis] = place_on(grid.knots[axis], point[axis]);
    fade *= places[axis].fade;
  }
  return value_between<Axes>(grid, places.data(), 0) * fade;
}

}  // namespace

// The weights of grid_weights written out as nested pairs.
double residual_at(const ResidualGrid& grid, std::span<const double> point) {
  if (grid.empty()) return 0;
  assert(point.size() == grid.knots.size() && "a coordinate for every axis");
  static_assert(kMostResidualAxes == 4);
  switch (grid.knots.size()) {
    case 1:
      return residual_over<1>(grid, point);
    case 2:
      return residual_over<2>(grid, point);
    case 3:
      return residual_over<3>(grid, point);
    case 4:
      return residual_over<4>(grid, point);
    default:
      return 0;
  }
}

}  // namespace trainyard
