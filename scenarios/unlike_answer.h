// What a job does on groups of unlike nodes by its own plan or the best of all ways, in the form
// that a sweep's point, the life of a run and a comparison take from an estimate.
//
// Assumes what planner/heterogeneous/value.h does of a job on several groups. Parts of the step are
// not told: groups have their own.
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
  PreparedJob stand_in;  // as many like nodes, at the groups' price and power on average
  Candidate candidate;   // on it: the whole job's rates, memory and bill; no breakdown, no stages
};

// `settings`: the plan, failures and checkpoints of the question; `options`: group_options of it
// (scenarios/question.h), with what the caller adds. Error: its plan does not say which groups have
// what, or is not legal on them; or none fits.
Expected<UnlikeAnswer> answer_of_groups(const GroupedJob& job, const Scenario& settings,
                                        const GroupSearchOptions& options);

// The best plans for the nodes that may be left, where the job is to be planned anew: those that
// failed are of the group whose loss costs more.
std::vector<Replan> replans_of_groups(const GroupedJob& job, const Scenario& settings,
                                      const UnlikeAnswer& answer,
                                      const std::vector<int>& nodes_left);

// Why something is not for groups of unlike nodes; and a plan of their own.
Error not_for_groups(std::string_view where, std::string_view found, std::string_view allowed);
Error plan_of_groups();

}  // namespace trainyard
