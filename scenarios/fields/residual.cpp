// The fields of a residual grid.
#include "scenarios/fields/residual.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace trainyard {
namespace {

constexpr NumberShape kCoordinate{.least = -1e3, .most = 1e3};
constexpr NumberShape kLogarithm{.least = -10, .most = 10};

Field<ResidualGrid> knots_field() {
  return {{.key = "knots",
           .shape = {ListShape{{{ListShape{{{kCoordinate}}}}}}},
           .doc = "of each axis, ascending; up to four axes"},
          [](const Json& value, ResidualGrid& grid, const Place&) -> Expected<void> {
            grid.knots = value.get<std::vector<std::vector<double>>>();
            return {};
          },
          [](const ResidualGrid& grid) -> std::optional<Json> { return Json(grid.knots); }};
}

Field<ResidualGrid> values_field() {
  return {{.key = "values",
           .shape = {ListShape{{{kLogarithm}}}},
           .doc = "ln(measured / form) at the knots, the last axis fastest"},
          [](const Json& value, ResidualGrid& grid, const Place&) -> Expected<void> {
            grid.values = value.get<std::vector<double>>();
            return {};
          },
          [](const ResidualGrid& grid) -> std::optional<Json> { return Json(grid.values); }};
}

Expected<void> check_grid(ResidualGrid& grid, const Place& place) {
  if (grid.knots.size() > kMostResidualAxes) {
    return (place / "knots")
        .error(
            fmt::format("found {} axes; allowed: 1 to {}", grid.knots.size(), kMostResidualAxes));
  }
  for (std::size_t axis = 0; axis < grid.knots.size(); ++axis) {
    const auto& knots = grid.knots[axis];
    const bool ascending = std::ranges::is_sorted(knots, std::less_equal<>());
    if (knots.size() >= 2 && ascending) continue;
    return (place / "knots" / axis).error("found no axis; allowed: two or more, each greater");
  }
  const std::size_t size = grid_size(grid.knots);
  if (grid.values.size() == size) return {};
  return (place / "values")
      .error(fmt::format("found {} values; allowed: {}, one a corner of the grid",
                         grid.values.size(), size));
}

}  // namespace

const Section<ResidualGrid>& residual_section() {
  static const Section<ResidualGrid> section(
      "residual", "A smooth correction of a fitted form: a grid over logarithms of the shape.",
      {knots_field().required(), values_field().required()}, {.finish = check_grid});
  return section;
}

}  // namespace trainyard
