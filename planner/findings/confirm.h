// The best plans priced a second time by another evaluator (the simulator, which the planner does
// not know), and put in the order of what that found.
#pragma once

#include <functional>
#include <vector>

#include "model/expected.h"
#include "planner/planner.h"

namespace trainyard {

// The step as the second evaluator has it; an error says in a sentence why it cannot.
using Confirmer = std::function<Expected<Estimate>(const Plan& plan)>;

// Confirms the first `count` of `plans`, and those behind them until one fits, and orders them by
// what was found, plans without a second time by their estimate, those that then fit before those
// that do not. Once interrupted, those that were not reached stay behind the others. A plan departs
// whose second time lies outside its estimate's interval.
void confirm(const PreparedJob& job, const SearchOptions& options, int count,
             const Confirmer& second, std::vector<Candidate>& plans);

// What the second evaluator found, where it did.
const Estimate& best_known(const Candidate& candidate);

}  // namespace trainyard
