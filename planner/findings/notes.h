// Notes on plans that a reader must know beside their cost: a value that was fixed and has no
// effect on them, and a choice that their stack is not known to have.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "planner/improvement.h"
#include "planner/planner.h"

namespace trainyard {

struct PlanNote {
  std::string text;                // "sequence_parallel true has no effect without …"
  std::vector<std::size_t> plans;  // indices in the list, ascending; empty: of the whole search
  bool improvement = false;        // about the improved plan, too
};

// The notes, ordered by the first plan that they are about. `options` are those of the search.
std::vector<PlanNote> notes_on(const Job& job, const SearchOptions& options,
                               const std::vector<Candidate>& plans,
                               const std::optional<Improvement>& improvement);

}  // namespace trainyard
