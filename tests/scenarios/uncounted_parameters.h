// What the sentences about an imported network say that it has beyond parameter_count() of its
// model, less what it has not.
#pragma once

#include <regex>
#include <string>

#include "scenarios/huggingface.h"

namespace trainyard {

// "norms of queries: 8192 parameters (0.01 %) are not planned or counted".
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
