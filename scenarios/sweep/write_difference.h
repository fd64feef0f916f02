// What `trainyard diff` found, as JSON (`diff/1`).
#pragma once

#include "planner/planner.h"
#include "scenarios/sweep/difference.h"

namespace trainyard {

std::string scenario_difference_json(const std::vector<KeyChange>& changes, const Candidate& before,
                                     const Candidate& after);
std::string result_difference_json(const ResultDifference& difference);

}  // namespace trainyard
