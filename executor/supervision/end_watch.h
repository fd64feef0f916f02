// Ends a rank's process from a thread of its own, because the rank itself may be in a call that
// never returns. It does so when a signal asks for it, or when the rank has made no progress for
// its timeout and no supervisor watches it.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/supervision/host_boards.h"
#include "model/units.h"

namespace trainyard {

struct WatchedRank {
  // A number that changes for as long as the rank makes progress; nothing: the rank waits for
  // another one's long work and has no limit.
  std::function<std::optional<std::int64_t>()> beats;
  std::optional<Seconds> timeout;    // nothing: a supervisor watches the timeout
  std::function<Verdict()> hanging;  // called when the timeout is over: what is wrong
  std::function<void(const std::string& why)> save;
};

class EndWatch {
 public:
  // `leave` is the last thing called before the process ends, with status 128 + signal after a
  // signal or 3 after the timeout. The thread outlives this object: a signal still ends the process
  // then. Requires: `signals` are blocked in every thread, the calling one included.
  EndWatch(const sigset_t& signals, std::function<void()> leave);
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // From now until let_go(), `rank` is saved before the process ends.
  void watch(WatchedRank rank);
  // Does not return if the rank is being saved: the process ends.
  void let_go();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trainyard
