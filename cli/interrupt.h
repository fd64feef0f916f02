// How Ctrl-C, a scheduler's signals and a time limit ask work to stop.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "model/units.h"

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
// Whether Ctrl-C came: the flag, for work that reads it itself.
const std::atomic<bool>* interrupt_flag();
bool was_interrupted();

// While it lives, what is added to an answer is to end when `left` is over, as Ctrl-C ends it.
class AddedTime {
 public:
  explicit AddedTime(Seconds left);

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread clock_;
};
// Whether Ctrl-C or the end of added time came.
const std::atomic<bool>* stop_flag();
bool was_stopped();
// Whether one of them came, and half a second has gone since this was asked for: what is quick is
// still added.
std::function<bool()> closing_time();

}  // namespace trainyard
