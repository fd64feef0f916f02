// The fields of a residual grid. Its numbers are written in lines of text, so that a document stays
// readable.
#include "scenarios/fields/residual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <span>

namespace trainyard {
namespace {

constexpr double kMostCoordinate = 1e3;
constexpr double kMostPermille = 1e4;

// Whether `line` is numbers up to `most`, separated by single blanks.
bool append_numbers(std::string_view line, double most, std::vector<double>& numbers) {
  while (true) {
    double number = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (failed != std::errc() || !(std::abs(number) <= most)) return false;
    numbers.push_back(number);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (line.empty()) return true;
    if (line.front() != ' ') return false;
    line.remove_prefix(1);
  }
}

tl::unexpected<Error> no_numbers(const Json& line, double most, const Place& place) {
  return place.error(fmt::format("found {}; allowed: numbers from {} to {}, a blank between two",
                                 shown(line), -most, most));
}

Field<ResidualGrid> knots_field() {
  return {{.key = "knots",
           .shape = {ListShape{.element = {{TextShape{}}}}},
           .doc = "grid coordinates: one line of ascending numbers an axis, up to four"},
          [](const Json& value, ResidualGrid& grid, const Place& place) -> Expected<void> {
            for (std::size_t i = 0; i < value.size(); ++i) {
              const auto& line = value[i].get_ref<const std::string&>();
              if (!append_numbers(line, kMostCoordinate, grid.knots.emplace_back())) {
                return no_numbers(value[i], kMostCoordinate, place / i);
              }
            }
            return {};
          },
          [](const ResidualGrid& grid) -> std::optional<Json> {
            Json lines = Json::array();
            for (const auto& axis : grid.knots) {
              lines.push_back(fmt::format("{}", fmt::join(axis, " ")));
            }
            return lines;
          }};
}

// The numbers in a line: those at one knot of the first axis, or all if there is only one axis.
std::size_t line_length(const ResidualGrid& grid) {
  const std::span<const std::vector<double>> knots = grid.knots;
  return grid_size(knots.size() > 1 ? knots.subspan(1) : knots);
}

std::string permille_line(std::span<const double> values) {
  std::vector<long> whole;
  whole.reserve(values.size());
  for (const double value : values) whole.push_back(std::lround(value * 1e3));
  return fmt::format("{}", fmt::join(whole, " "));
}

Field<ResidualGrid> permille_field() {
  return {{.key = "permille",
           .shape = {ListShape{.element = {{TextShape{}}}}},
           .doc = "ln(measured / formula) in thousandths: one line for each knot of the first "
                  "axis, in it the last axis fastest; one line if there is one axis"},
          [](const Json& value, ResidualGrid& grid, const Place& place) -> Expected<void> {
            for (std::size_t i = 0; i < value.size(); ++i) {
              const auto& line = value[i].get_ref<const std::string&>();
              if (!append_numbers(line, kMostPermille, grid.values)) {
                return no_numbers(value[i], kMostPermille, place / i);
              }
            }
            for (double& number : grid.values) number /= 1e3;
            return {};
          },
          [](const ResidualGrid& grid) -> std::optional<Json> {
            Json lines = Json::array();
            const std::size_t length = line_length(grid);
            for (std::size_t at = 0; at < grid.values.size(); at += length) {
              lines.push_back(permille_line(std::span(grid.values).subspan(at, length)));
            }
            return lines;
          }};
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
  return (place / "permille")
      .error(fmt::format("found {} numbers; allowed: {}, one a corner of the grid",
                         grid.values.size(), size));
}

}  // namespace

const Section<ResidualGrid>& residual_section() {
  static const Section<ResidualGrid> section(
      "residual",
      "A smooth correction of a fitted formula: a grid over logarithms of the kernel's or "
      "message's sizes.",
      {knots_field().required(), permille_field().required()}, {.finish = check_grid});
  return section;
}

}  // namespace trainyard
