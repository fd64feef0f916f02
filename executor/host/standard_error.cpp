#include "executor/host/standard_error.h"

#include <csignal>
#include <cstdio>
#include <ctime>

namespace trainyard {

// A pipe without a reader raises a signal in the thread that writes: it is held back and taken.
void to_stderr(std::string_view text) {
  sigset_t pipe;
  sigset_t before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  const timespec now{};
  if (sigismember(&before, SIGPIPE) == 0) static_cast<void>(sigtimedwait(&pipe, nullptr, &now));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace trainyard
