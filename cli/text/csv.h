// Results as CSV (RFC 4180): SI numbers under the keys of the JSON output; unknown values are
// empty.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

// Pairs of key and value; all rows of a table have the same keys.
using CsvRow = std::vector<std::pair<std::string, std::string>>;

std::string csv_number(double value);  // shortest text that reads back as the same number

template <typename Q>
std::string csv_number(const std::optional<Q>& quantity) {
  return quantity ? csv_number(quantity->value()) : "";
}
inline std::string csv_number(const std::optional<double>& value) {
  return value ? csv_number(*value) : "";
}

// A head line and a line for each row, ended by LF.
std::string csv_text(const std::vector<CsvRow>& rows);

// A plan and its estimate, without the stages.
CsvRow csv_row(const std::string& name, const Candidate& candidate);

}  // namespace trainyard
