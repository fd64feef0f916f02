#include "scenarios/sweep/workers/processes.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "scenarios/json/file.h"

namespace trainyard {
namespace {

// A worker ignores interruptions: the supervisor acts on them.
[[noreturn]] void serve(const Sweep& sweep, int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);
  serve_leases(sweep, socket);
  ::_exit(0);
}

}  // namespace

Expected<WorkerPool> start_worker_processes(const Sweep& sweep, int count) {
  WorkerPool pool;
  for (int i = 0; i < count; ++i) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return failure("--ranks", fmt::format("no socket for a worker: {}", reason_of(errno)));
    }
    const pid_t process = ::fork();
    if (process < 0) {
      const int error = errno;
      for (const int end : ends) ::close(end);
      return failure("--ranks", fmt::format("a worker cannot be started: {}", reason_of(error)));
    }
    if (process == 0) {
      // Close the supervisor's ends of all sockets here, so that a worker notices when the
      // supervisor ends.
      for (const WorkerPool::Worker& other : pool.workers()) ::close(other.socket);
      ::close(ends[0]);
      serve(sweep, ends[1]);
    }
    ::close(ends[1]);
    pool.add({.socket = ends[0], .process = process});
  }
  return pool;
}

}  // namespace trainyard
