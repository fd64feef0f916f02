// A point as JSON: `point`, `status`, what it has of its own, and its figures (null: unknown).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/json/json_document.h"
#include "scenarios/sweep/results/point_row.h"

namespace trainyard {

Json row_value(const PointRow& row);

// What the point has of its own: keys and values, text without its quotes.
std::vector<std::pair<std::string, std::string>> overrides_of(const PointRow& row);

}  // namespace trainyard
