#include "cli/interrupt.h"

#include <algorithm>
#include <chrono>
#include <csignal>

namespace trainyard {
namespace {

// A signal handler can reach nothing but globals.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> interrupt_requested = false;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

void request_interrupt(int signal) {
  interrupt_requested = true;
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

void keep_requesting_interrupt(int) {
  interrupt_requested = true;
  stop_requested = true;
}

void raise_interrupt(int) { std::raise(SIGINT); }

constexpr std::array kTerminations = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

InterruptGuard::InterruptGuard()
    : previous_(std::signal(SIGINT, interrupt_requested ? SIG_DFL : request_interrupt)) {}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, interrupt_requested ? SIG_DFL : previous_);
}

InterruptOnTermination::InterruptOnTermination()
    : previous_(std::signal(SIGTERM, raise_interrupt)) {}

InterruptOnTermination::~InterruptOnTermination() { std::signal(SIGTERM, previous_); }

TerminationGuard::TerminationGuard() {
  for (std::size_t i = 0; i < kTerminations.size(); ++i) {
    previous_[i] = std::signal(kTerminations[i], keep_requesting_interrupt);
    const bool stays = previous_[i] == SIG_IGN && kTerminations[i] != SIGINT;  // nohup
    if (stays) std::signal(kTerminations[i], SIG_IGN);
  }
}

TerminationGuard::~TerminationGuard() {
  if (interrupt_requested) return;
  for (std::size_t i = 0; i < kTerminations.size(); ++i) {
    std::signal(kTerminations[i], previous_[i]);
  }
}

const std::atomic<bool>* interrupt_flag() { return &interrupt_requested; }

bool was_interrupted() { return interrupt_requested; }

AddedTime::AddedTime(Seconds left) {
  if (left <= Seconds(0)) {
    stop_requested = true;
    return;
  }
  constexpr Seconds kMost(1e9);  // more would leave the clock's range
  const auto most = std::chrono::duration<double>(std::min(left, kMost).value());
  clock_ = std::jthread([this, most](const std::stop_token& token) {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, token, most, [] { return false; });
    if (!token.stop_requested()) stop_requested = true;
  });
}

const std::atomic<bool>* stop_flag() { return &stop_requested; }

bool was_stopped() { return stop_requested; }

std::function<bool()> closing_time() {
  constexpr std::chrono::milliseconds kClosing(500);
  return [end = std::chrono::steady_clock::now() + kClosing] {
    return was_stopped() && std::chrono::steady_clock::now() >= end;
  };
}

}  // namespace trainyard
