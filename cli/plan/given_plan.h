// Says which keys of a scenario's own plan hold for every plan that is searched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/findings/notes.h"
#include "scenarios/scenario.h"

namespace trainyard {

// A note on which keys of the plan are kept, searched anew or ignored; nothing where the scenario
// has no plan, or an empty one. `searched` names the dimensions of the search. The note belongs to
// no plan of the list in particular.
std::optional<PlanNote> note_on_given_plan(const Scenario& scenario,
                                           const std::vector<std::string>& searched);

}  // namespace trainyard
