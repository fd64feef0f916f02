// The answer for a job on groups of unlike nodes, by its own plan or by the best one found, in the
// same form as an estimate, so that sweeps, lives of runs and comparisons can use it.
//
// Assumes the same as planner/heterogeneous/value.h about a job on several groups. There is no
// breakdown of the step, because each group has its own.
#pragma once

#include <optional>
#include <vector>

#include "planner/heterogeneous/groups.h"
#include "planner/planner.h"
#include "scenarios/scenario.h"
#include "simulator/life/settings.h"

namespace trainyard {

struct UnlikeAnswer {
  GroupedPlan best;
  PreparedJob stand_in;  // as many devices in like nodes, at the groups' mean price and power
  Candidate candidate;   // rates, memory and bill of the whole job; no breakdown, no stages
};

// Prices the plan of `settings` if it has one, else searches the best. `settings`: the scenario
// with plan, failures and checkpoints; `options`: its group_options (scenarios/question.h), perhaps
// extended. Fails if the plan does not say which groups have what or is not legal, or if no plan
// fits.
Expected<UnlikeAnswer> answer_of_groups(const GroupedJob& job, const Scenario& settings,
                                        const GroupSearchOptions& options);

// Brings the interval, the bill and the candidate up to the plan's step time and shares, which were
// changed.
void value_again(const GroupedJob& job, const Scenario& settings, UnlikeAnswer& answer);

// For each number of nodes that may be left, the speed of the best plan for them. The nodes that
// fail are taken from the group whose loss costs more time.
std::vector<Replan> replans_of_groups(const GroupedJob& job, const Scenario& settings,
                                      const UnlikeAnswer& answer,
                                      const std::vector<int>& nodes_left);

// Errors: something that groups of unlike nodes do not support; a plan that is given for them.
Error not_for_groups(std::string_view where, std::string_view found, std::string_view allowed);
Error plan_of_groups();

}  // namespace trainyard
