// What `trainyard plan` and `estimate` print of groups of unlike nodes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/text/layout/style.h"
#include "planner/heterogeneous/groups.h"
#include "scenarios/question.h"
#include "scenarios/write/groups.h"

namespace trainyard {

struct GroupAnswer {
  std::vector<GroupedPlan> plans;  // to be shown, the best first
  GroupedPlans found;
  GroupedFindings findings;
  bool robust = false;
  std::size_t alike = 0;  // of a front, left out because they look like one that is shown
};
std::string groups_report(const Question& question, const GroupAnswer& answer, const Style& style);

// Of one plan, fit or not.
std::string grouped_estimate_report(const Question& question, const UnlikeAnswer& answer,
                                    const Style& style);

// Requires: it does not fit. The devices that are too full, and by how much; no full stop.
std::string misfit_words(const Scenario& scenario, const GroupedPlan& plan);

}  // namespace trainyard
