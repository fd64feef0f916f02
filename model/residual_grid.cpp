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
  const auto last = static_cast<double>(knots.size() - 1);
  AxisPlace place;
  // Where evenly spaced knots have it; from there to where these do.
  place.below =
      static_cast<std::size_t>(last * (inside - knots.front()) / (knots.back() - knots.front()));
  place.below = std::min(place.below, knots.size() - 2);
  while (place.below > 0 && inside < knots[place.below]) --place.below;
  while (place.below + 2 < knots.size() && inside >= knots[place.below + 1]) ++place.below;
  const double low = knots[place.below];
  place.share = (inside - low) / (knots[place.below + 1] - low);
  place.fade = std::max(0.0, 1 - std::abs(coordinate - inside) / kResidualReach);
  return place;
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

double residual_at(const ResidualGrid& grid, std::span<const double> point) {
  if (grid.empty()) return 0;
  const GridWeights weights = grid_weights(grid.knots, point);
  double value = 0;
  for (std::size_t i = 0; i < weights.count; ++i) {
    value += weights.weight[i] * grid.values[weights.corner[i]];
  }
  return value * weights.fade;
}

}  // namespace trainyard
