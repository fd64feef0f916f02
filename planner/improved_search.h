// The best plan of a job where one is asked for: a search, and what is gained on its plans.
#pragma once

#include "planner/improvement.h"

namespace trainyard {

// The options of a search whose plans are improved: it keeps what improve() looks at.
SearchOptions with_kept_for_improvement(SearchOptions options);

// What search() finds, with the improved plan before its plans where that fits, the stack is known
// to run it and the search ended; the time limit is one of both. Costs without stages are not
// improved.
SearchResult improved_search(const PreparedJob& job, const SearchOptions& options,
                             const Evaluator& evaluate);

}  // namespace trainyard
