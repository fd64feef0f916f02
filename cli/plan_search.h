// Runs the planner for a command: progress on stderr, Ctrl-C ends the search early and keeps the
// best so far.
#pragma once

#include <atomic>
#include <filesystem>

#include "cli/question.h"
#include "planner/planner.h"

namespace trainyard {

// While it lives, Ctrl-C asks the work to stop; a second one ends the program. One may live inside
// another.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*previous_)(int);
};
const std::atomic<bool>* interrupt_flag();

// `options` without progress and interruption, which are filled in.
SearchResult run_search(const Question& question, SearchOptions options);
// Whether Ctrl-C ended a search.
bool was_interrupted();

// The best plan; the one that misses the memory by the least when none fits; an error when the
// space has no legal plan.
Expected<Candidate> best_candidate(const std::filesystem::path& file, const Question& question);

// The plan of the scenario; without one, the best that the planner finds (design §3).
Expected<Plan> plan_of(const std::filesystem::path& file, const Question& question);

}  // namespace trainyard
