// The parameters that an imported network has but parameter_count() of its model does not count,
// less those that are counted but that the network does not have, as the importer's assumptions
// state them.
#pragma once

#include <regex>
#include <string>

#include "scenarios/huggingface.h"

namespace trainyard {

// Adds up sentences such as "norms of queries: 8192 parameters (0.01 %) are not planned or
// counted".
inline double uncounted_parameters(const ImportedModel& imported) {
  static const std::regex kDifference(
      R"(.*: (\d+) parameters \(.*\) are (not planned or counted|planned that it does not have))");
  double sum = 0;
  for (const std::string& line : imported.assumptions) {
    std::smatch found;
    if (!std::regex_match(line, found, kDifference)) continue;
    sum += (found[2].str().starts_with("not") ? 1 : -1) * std::stod(found[1].str());
  }
  return sum;
}

}  // namespace trainyard
