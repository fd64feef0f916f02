// The table of plans for groups of unlike nodes: group by group, what each does.
#pragma once

#include <string>
#include <vector>

#include "cli/text/layout/style.h"
#include "planner/heterogeneous/groups.h"
#include "scenarios/scenario.h"

namespace trainyard {

// "stages on each"; of a way to use the groups.
std::string use_words(const GroupedPlan& plan);

// With the replicas of all groups, and their number where states are sharded over all of a group's.
Plan shown_plan(const GroupedPlan& found);

// What plans were ordered by.
struct GroupValues {
  std::vector<Objective> objectives;  // that of `value`, then that of `second_value`
  bool robust = false;
};
// With the plans' values where no other column has them.
std::string groups_table(const Scenario& scenario, const std::vector<GroupedPlan>& plans,
                         const Style& style, const GroupValues& values = {});

}  // namespace trainyard
