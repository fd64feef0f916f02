// Runs the planner for a command: progress on stderr, Ctrl-C ends the search early and keeps the
// best so far.
#pragma once

#include <filesystem>

#include "planner/planner.h"
#include "scenarios/question.h"

namespace trainyard {

// `options` without progress, which is filled in, and so is Ctrl-C where nothing else interrupts.
SearchResult run_search(const Question& question, SearchOptions options);
// Of a search of the question in `file`, when it had found nothing.
Error nothing_before_interruption(const std::filesystem::path& file);
Error nothing_before_time_limit(const std::filesystem::path& file);

// The best plan; the one that misses the memory by the least when none fits; an error when the
// space has no legal plan.
Expected<Candidate> best_candidate(const std::filesystem::path& file, const Question& question);

// The plan of the scenario; without one, the best that the planner finds (design §3).
Expected<Plan> plan_of(const std::filesystem::path& file, const Question& question);

}  // namespace trainyard
