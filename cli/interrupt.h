// How Ctrl-C, a scheduler's signals and a time limit ask work to stop: they set flags that the work
// reads.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "model/units.h"

namespace trainyard {

// While it lives, Ctrl-C asks the work to stop, and a second Ctrl-C ends the program. Guards may be
// nested.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*previous_)(int);
};
// While it lives, SIGTERM, which schedulers send before they end a job, acts as Ctrl-C.
class InterruptOnTermination {
 public:
  InterruptOnTermination();
  ~InterruptOnTermination();
  InterruptOnTermination(const InterruptOnTermination&) = delete;
  InterruptOnTermination& operator=(const InterruptOnTermination&) = delete;

 private:
  void (*previous_)(int);
};
// While it lives, Ctrl-C, SIGTERM and SIGHUP (of schedulers and lost terminals) ask the work to
// stop, however often they come: an orderly end, which leaves nothing behind, is not cut short.
// Once one came, the program is about to end, and so it stays until it has.
class TerminationGuard {
 public:
  TerminationGuard();
  ~TerminationGuard();
  TerminationGuard(const TerminationGuard&) = delete;
  TerminationGuard& operator=(const TerminationGuard&) = delete;

 private:
  std::array<void (*)(int), 3> previous_{};
};
// Whether Ctrl-C came; the flag is for work that reads it itself.
const std::atomic<bool>* interrupt_flag();
bool was_interrupted();

// While it lives, sets the stop flag when `left` is over: work that only adds to an answer then
// ends as after Ctrl-C.
class AddedTime {
 public:
  explicit AddedTime(Seconds left);

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread clock_;
};
// Whether Ctrl-C or the end of an AddedTime came.
const std::atomic<bool>* stop_flag();
bool was_stopped();
// A function that is true when work was asked to stop and half a second has passed since this call:
// quick additions are still made.
std::function<bool()> closing_time();

}  // namespace trainyard
