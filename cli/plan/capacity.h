// `trainyard plan` for a scenario whose `planner` section asks for several sizes (networks,
// batches, sequence lengths, devices): the best plan of each, and from these the fewest devices
// that meet the deadline, the largest network and the longest sequence.
#pragma once

#include "cli/command.h"
#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// Returns the exit status.
int answer_for_sizes(const std::filesystem::path& file, const Question& question,
                     const SearchOptions& options, Format format);

}  // namespace trainyard
