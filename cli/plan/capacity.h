// `trainyard plan` of a scenario whose `planner` section asks for sizes: the best plan of each, and
// what follows: the fewest devices in time, the largest network, the longest sequence.
#pragma once

#include "cli/command.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// Returns the exit status.
int answer_for_sizes(const std::filesystem::path& file, const Question& question,
                     const SearchOptions& options, Format format);

}  // namespace trainyard
