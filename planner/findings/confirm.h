// Prices the best plans a second time by another evaluator (the simulator, which the planner does
// not know), and orders them by that price.
#pragma once

#include <functional>
#include <vector>

#include "model/expected.h"
#include "planner/planner.h"

namespace trainyard {

// The second evaluator's estimate of a plan; an error says in a sentence why there is none.
using Confirmer = std::function<Expected<Estimate>(const Plan& plan)>;

// Confirms the first `count` of `plans`, and further ones until one fits. Orders those it
// confirmed: plans that fit first, then by the objective, as the second evaluator has it, else as
// the estimate does. Once interrupted, plans that were not reached stay behind the others. A plan
// departs if its second time lies outside its estimate's interval.
void confirm(const PreparedJob& job, const SearchOptions& options, int count,
             const Confirmer& second, std::vector<Candidate>& plans);

// The second evaluator's estimate, where there is one; else the first.
const Estimate& best_known(const Candidate& candidate);

}  // namespace trainyard
