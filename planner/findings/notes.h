// What the reader of an answer must be told of its plans beside what they cost: a value that was
// fixed and has no effect on them, and a choice that their stack is not known to have.
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
  std::vector<std::size_t> plans;  // places in the list, ascending; empty: of the search
  bool improvement = false;        // of the improved plan too
};

// In the order of the plans that they are about first. `options` are those of the search.
std::vector<PlanNote> notes_on(const Job& job, const SearchOptions& options,
                               const std::vector<Candidate>& plans,
                               const std::optional<Improvement>& improvement);

}  // namespace trainyard
