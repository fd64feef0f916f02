// Differences between two scenarios or two result files, as text.
#pragma once

#include <string>

#include "cli/text/layout/style.h"
#include "scenarios/sweep/results/write_difference.h"

namespace trainyard {

// A scenario's name and its answer; for groups of unlike nodes also the table of how they are used.
struct NamedAnswer : ComparedAnswer {
  std::string name;
  std::string groups_table;
};

std::string scenario_difference_text(const std::vector<KeyChange>& changes,
                                     const NamedAnswer& before, const NamedAnswer& after,
                                     const Style& style);
std::string result_difference_text(const ResultDifference& difference, const Style& style);

}  // namespace trainyard
