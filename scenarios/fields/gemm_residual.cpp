// The fields of a GEMM's residual grid (model/cluster/gemm_residual.h). Its numbers stand in lines
// of text, one for each node of m, so that a document stays readable.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

using R = GemmResidual;
using Triple = std::array<int, 3>;

Field<R> triple(std::string key, Triple R::*member, std::string doc, CountShape range) {
  return {{.key = std::move(key),
           .shape = {ListShape{.element = {{range}}, .size = 3}},
           .doc = std::move(doc)},
          [member](const Json& value, R& grid, const Place&) -> Expected<void> {
            for (std::size_t i = 0; i < 3; ++i) (grid.*member)[i] = value[i].get<int>();
            return {};
          },
          [member](const R& grid) -> std::optional<Json> { return Json(grid.*member); }};
}

// Whether all of `line` is numbers, a blank between two.
bool append_numbers(std::string_view line, std::vector<std::int16_t>& numbers) {
  while (true) {
    std::int16_t number = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (failed != std::errc()) return false;
    numbers.push_back(number);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (line.empty()) return true;
    if (line.front() != ' ') return false;
    line.remove_prefix(1);
  }
}

std::size_t nodes_of(const R& grid, std::size_t first_axis) {
  std::size_t nodes = 1;
  for (std::size_t axis = first_axis; axis < 3; ++axis) {
    nodes *= static_cast<std::size_t>(grid.nodes[axis]);
  }
  return nodes;
}

Field<R> permille() {
  return {{.key = "permille",
           .shape = {ListShape{.element = {{TextShape{}}}}},
           .doc = "thousandths of ln(factor): a line a node of m, in it by n, then k"},
          [](const Json& value, R& grid, const Place& place) -> Expected<void> {
            for (std::size_t i = 0; i < value.size(); ++i) {
              if (append_numbers(value[i].get_ref<const std::string&>(), grid.permille)) continue;
              return (place / i).error(fmt::format(
                  "found {}; allowed: whole numbers from -32768 to 32767, a blank between two",
                  shown(value[i])));
            }
            return {};
          },
          [](const R& grid) -> std::optional<Json> {
            if (grid.empty()) return std::nullopt;
            Json lines = Json::array();
            const std::size_t length = nodes_of(grid, 1);
            for (std::size_t at = 0; at < grid.permille.size(); at += length) {
              const std::span line(grid.permille.data() + at, length);
              lines.push_back(fmt::format("{}", fmt::join(line, " ")));
            }
            return lines;
          }};
}

Expected<void> check_size(R& grid, const Place& place) {
  if (grid.permille.size() == nodes_of(grid, 0)) return {};
  return (place / "permille")
      .error(fmt::format("found {} numbers; allowed: {}, the product of `nodes`",
                         grid.permille.size(), nodes_of(grid, 0)));
}

}  // namespace

const Section<GemmResidual>& gemm_residual_section() {
  static const Section<R> section(
      "gemm_residual",
      "What measured GEMMs take beyond the tile model: ln of a factor on a grid over log2 of m, n "
      "and k, a node an octave, linear between nodes, 0 beyond.",
      {
          triple("first", &R::first, "log2 of m, n and k at the first node", {0, 40}).required(),
          triple("nodes", &R::nodes, "how many, of m, n and k", {1, 40}).required(),
          permille().required(),
      },
      {.finish = check_size});
  return section;
}

}  // namespace trainyard
