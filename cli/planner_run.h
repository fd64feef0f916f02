// Runs the planner for a command, with progress on stderr; Ctrl-C ends the search early and keeps
// the best plan so far.
#pragma once

#include <filesystem>

#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// Searches with `options`. It sets their progress, and their interruption where they have none.
SearchResult run_search(const Question& question, SearchOptions options);
// The error of a search for the scenario in `file` that was stopped before it found a plan that
// fits.
Error nothing_before_interruption(const std::filesystem::path& file);
Error nothing_before_time_limit(const std::filesystem::path& file);

// The best plan; if none fits, the one that misses the memory by the least. An error if no plan is
// legal.
Expected<Candidate> best_candidate(const std::filesystem::path& file, const Question& question);

// The plan of the scenario; without one, the best that the planner finds (design §3).
Expected<Plan> plan_of(const std::filesystem::path& file, const Question& question);

}  // namespace trainyard
