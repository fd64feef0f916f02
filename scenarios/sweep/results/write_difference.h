// The result of `trainyard diff` as JSON (`diff/1`).
#pragma once

#include <optional>

#include "planner/planner.h"
#include "scenarios/sweep/results/difference.h"
#include "scenarios/unlike_answer.h"

namespace trainyard {

// For groups of unlike nodes, how they are used; they have no common breakdown of the step.
struct UseOfGroups {
  UnlikeCluster cluster;
  GroupedPlan plan;
  std::optional<double> carbon_intensity;  // g of CO2 a joule
};
struct ComparedAnswer {
  Candidate candidate;
  std::optional<UseOfGroups> groups;
  std::optional<double> carbon_per_step;  // g
  double goodput = 0;                     // of the closed form
};

std::string scenario_difference_json(const std::vector<KeyChange>& changes,
                                     const ComparedAnswer& before, const ComparedAnswer& after);
std::string result_difference_json(const ResultDifference& difference);

}  // namespace trainyard
