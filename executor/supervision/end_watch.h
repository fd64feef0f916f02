// Ends a rank's process from a thread of its own, since the rank may be in a call that never
// returns: when a signal tells it to, or when it has not gone on for its timeout and no supervisor
// looks at it.
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
  // Another number each time that it is asked while the rank goes on; nothing: the rank waits for
  // as long as another one works.
  std::function<std::optional<std::int64_t>()> beats;
  std::optional<Seconds> timeout;    // nothing: a supervisor has it
  std::function<Verdict()> hanging;  // when it is over
  std::function<void(const std::string& why)> save;
};

class EndWatch {
 public:
  // Requires: `signals` are blocked in every thread, this one's too. `leave`: the last thing before
  // the process ends. A signal ends it with status 128 + signal, the timeout with 3. The thread
  // outlives this object: a signal still ends the process then.
  EndWatch(const sigset_t& signals, std::function<void()> leave);
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // From here on there is something to save, until the rank is let go of.
  void watch(WatchedRank rank);
  // Does not return if the rank is being saved.
  void let_go();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trainyard
