// What `trainyard plan` and `estimate` print for groups of unlike nodes.
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
  std::vector<GroupedPlan> plans;  // plans to show, the best first
  GroupedPlans found;
  GroupedFindings findings;
  bool robust = false;
  std::size_t alike = 0;  // plans of a front that are not shown because they look like another one
};
std::string groups_report(const Question& question, const GroupAnswer& answer, const Style& style);

// The report on one plan, whether it fits or not.
std::string grouped_estimate_report(const Question& question, const UnlikeAnswer& answer,
                                    const Style& style);

// Which devices are too full, and by how much; without a full stop. Requires: the plan does not
// fit.
std::string misfit_words(const Scenario& scenario, const GroupedPlan& plan);

}  // namespace trainyard
