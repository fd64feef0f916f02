// Runs the planner for a command: progress on stderr, Ctrl-C ends the search early and keeps the
// best so far.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "planner/planner.h"
#include "scenarios/question.h"

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
// While it lives, SIGTERM, as schedulers send it before they end a job, is a Ctrl-C.
class InterruptOnTermination {
 public:
  InterruptOnTermination();
  ~InterruptOnTermination();
  InterruptOnTermination(const InterruptOnTermination&) = delete;
  InterruptOnTermination& operator=(const InterruptOnTermination&) = delete;

 private:
  void (*previous_)(int);
};
// While it lives, Ctrl-C, and SIGTERM and SIGHUP as schedulers and lost terminals send them, ask
// for the same, as often as they come: what has begun to end, and leaves nothing behind, is not cut
// short.
class TerminationGuard {
 public:
  TerminationGuard();
  ~TerminationGuard();
  TerminationGuard(const TerminationGuard&) = delete;
  TerminationGuard& operator=(const TerminationGuard&) = delete;

 private:
  std::array<void (*)(int), 3> previous_{};
};
const std::atomic<bool>* interrupt_flag();

// While it lives, what is added to an answer is to end when `left` is over, as Ctrl-C ends it.
class AddedTime {
 public:
  explicit AddedTime(Seconds left);

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread clock_;
};
// Set when either came.
const std::atomic<bool>* stop_flag();
bool was_stopped();
// Whether it came, and half a second has gone since this was asked for: what is quick is still
// added.
std::function<bool()> closing_time();

// `options` without progress, which is filled in, and so is Ctrl-C where nothing else interrupts.
SearchResult run_search(const Question& question, SearchOptions options);
// Whether Ctrl-C ended a search.
bool was_interrupted();
// Of a search of the question in `file`, when it had found nothing.
Error nothing_before_interruption(const std::filesystem::path& file);
Error nothing_before_time_limit(const std::filesystem::path& file);

// The best plan; the one that misses the memory by the least when none fits; an error when the
// space has no legal plan.
Expected<Candidate> best_candidate(const std::filesystem::path& file, const Question& question);

// The plan of the scenario; without one, the best that the planner finds (design §3).
Expected<Plan> plan_of(const std::filesystem::path& file, const Question& question);

}  // namespace trainyard
