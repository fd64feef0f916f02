#include "executor/supervision/end_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "executor/host/standard_error.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;
constexpr timespec kLookEach{.tv_sec = 0, .tv_nsec = 50'000'000};
constexpr int kFailed = 3;  // exit status, as of every run whose machine failed

}  // namespace

struct EndWatch::State {
  std::mutex mutex;
  std::optional<WatchedRank> rank;
  std::function<void()> leave;
  std::optional<std::int64_t> beats;
  Clock::time_point changed;

  bool hangs() {
    if (!rank || !rank->timeout) return false;
    const auto now = rank->beats();
    if (!now || now != std::exchange(beats, now)) changed = Clock::now();
    return Clock::now() - changed > std::chrono::duration<double>(rank->timeout->value());
  }
  [[noreturn]] void end(const std::string& why, int status) {
    if (rank) rank->save(why);
    leave();
    ::_exit(status);
  }
};

EndWatch::EndWatch(const sigset_t& signals, std::function<void()> leave)
    : state_(std::make_shared<State>()) {
  state_->leave = std::move(leave);
  std::thread([signals, state = state_] {
    for (;;) {
      const int signal = ::sigtimedwait(&signals, nullptr, &kLookEach);
      const std::lock_guard lock(state->mutex);
      if (signal > 0) state->end("the rank was told to end", 128 + signal);
      if (!state->hangs()) continue;
      const Verdict verdict = state->rank->hanging();
      if (verdict.is_own) to_stderr(fmt::format("trainyard: {}\n", verdict.sentence));
      state->end(verdict.sentence, kFailed);
    }
  }).detach();
}

void EndWatch::watch(WatchedRank rank) {
  const std::lock_guard lock(state_->mutex);
  state_->rank = std::move(rank);
  state_->changed = Clock::now();
}

void EndWatch::let_go() {
  const std::lock_guard lock(state_->mutex);
  state_->rank.reset();
}

}  // namespace trainyard
