// CSV (RFC 4180) of results: SI numbers under the keys of the JSON output, empty where unknown.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

// Key and value; the keys of all rows are the same.
using CsvRow = std::vector<std::pair<std::string, std::string>>;

std::string csv_number(double value);  // the shortest text that reads back to the same number

template <typename Q>
std::string csv_number(const std::optional<Q>& quantity) {
  return quantity ? csv_number(quantity->value()) : "";
}
inline std::string csv_number(const std::optional<double>& value) {
  return value ? csv_number(*value) : "";
}

// A head and a line for every row, with LF.
std::string csv_text(const std::vector<CsvRow>& rows);

// A plan and its estimate, without the stages.
CsvRow csv_row(const std::string& name, const Candidate& candidate);

}  // namespace trainyard
