// The table of plans for groups of unlike nodes, with a row for each group of a plan.
#pragma once

#include <string>
#include <vector>

#include "cli/text/layout/style.h"
#include "planner/heterogeneous/groups.h"
#include "scenarios/scenario.h"

namespace trainyard {

// How a plan uses the groups, such as "stages on each".
std::string use_words(const GroupedPlan& plan);

// The plan as it is shown: with the replicas of all groups, and a sharding group of all of them
// where its states are sharded over all replicas of a group.
Plan shown_plan(const GroupedPlan& found);

// By what the plans were ordered.
struct GroupValues {
  std::vector<Objective> objectives;  // of GroupedPlan::value, then of second_value
  bool robust = false;
};
// Has columns for `values` that no other column shows.
std::string groups_table(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                         const Style& style, const GroupValues& values = {});

}  // namespace trainyard
