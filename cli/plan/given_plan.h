// A scenario's own plan beside a search: which of its keys hold for every plan that is searched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/findings/notes.h"
#include "scenarios/scenario.h"

namespace trainyard {

// Nothing where the scenario has no plan, or one that says nothing. `searched`: the dimensions of
// the search. The note is about no plan in particular.
std::optional<PlanNote> note_on_given_plan(const Scenario& scenario,
                                           const std::vector<std::string>& searched);

}  // namespace trainyard
