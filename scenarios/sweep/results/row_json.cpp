#include "scenarios/sweep/results/row_json.h"

#include <cmath>

namespace trainyard {
namespace {

// A value that the file keeps as JSON text.
Json parsed(const std::string& text) {
  auto value = parse_json(text);
  return value ? std::move(*value) : Json(nullptr);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> overrides_of(const PointRow& row) {
  std::vector<std::pair<std::string, std::string>> overrides;
  const Json own = parsed(row.overrides);
  for (const auto& [key, value] : own.items()) {
    overrides.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return overrides;
}

Json row_value(const PointRow& row) {
  Json value = {{"point", row.point},
                {"status", std::string(name_of(row.status))},
                {"note", row.note.empty() ? Json(nullptr) : Json(row.note)},
                {"overrides", parsed(row.overrides)},
                {"plan", parsed(row.plan)}};
  for (std::size_t i = 0; i < kFigures; ++i) {
    const double figure = row.figures[i];
    value[std::string(kFigureNames[i])] = std::isnan(figure) ? Json(nullptr) : Json(figure);
  }
  return value;
}

}  // namespace trainyard
