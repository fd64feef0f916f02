// What differs between two scenarios or two result files, as text.
#pragma once

#include <string>

#include "cli/style.h"
#include "planner/planner.h"
#include "scenarios/sweep/difference.h"

namespace trainyard {

// A scenario's name and its answer.
struct NamedAnswer {
  std::string name;
  Candidate candidate;
};

std::string scenario_difference_text(const std::vector<KeyChange>& changes,
                                     const NamedAnswer& before, const NamedAnswer& after,
                                     const Style& style);
std::string result_difference_text(const ResultDifference& difference, const Style& style);

}  // namespace trainyard
