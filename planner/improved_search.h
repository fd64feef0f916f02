// Finds the best plan of a job: a search, then the improvement of its plans.
#pragma once

#include "planner/improvement.h"

namespace trainyard {

// `options` for a search whose plans are to be improved: it keeps as many as improve() looks at.
SearchOptions with_kept_for_improvement(SearchOptions options);

// The result of search(), with the improved plan in front where it fits, the stack is known to run
// it and the search was complete. The time limit covers both. Plans whose estimates have no stages
// are not improved.
SearchResult improved_search(const PreparedJob& job, const SearchOptions& options,
                             const Evaluator& evaluate);

}  // namespace trainyard
