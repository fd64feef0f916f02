// A point as JSON: `point`, `status`, the values that it changes, and its figures (null: unknown).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/json/json_document.h"
#include "scenarios/sweep/results/point_row.h"

namespace trainyard {

Json row_value(const PointRow& row);

// The keys that the point changes and their values; text without quotes.
std::vector<std::pair<std::string, std::string>> overrides_of(const PointRow& row);

}  // namespace trainyard
