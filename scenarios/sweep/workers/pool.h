// Workers that answer leases of a sweep over sockets, wherever they are; the calling process hands
// out the leases and writes. A worker that dies loses its lease, and the others answer it; a point
// that two have died on is refused. Nothing that a worker does can harm the result file. Workers
// talk to the caller alone.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

class WorkerPool {
 public:
  struct Worker {
    int socket = -1;
    pid_t process = 0;  // a child of this process; 0: it is not
    std::optional<Lease> lease;
    std::string received;  // of an answer that is not complete yet
  };

  WorkerPool() = default;
  WorkerPool(WorkerPool&&) noexcept = default;
  WorkerPool& operator=(WorkerPool&&) = delete;
  ~WorkerPool();  // ends those that are left: sockets are closed, children killed

  void add(Worker worker) { workers_.push_back(std::move(worker)); }
  const std::vector<Worker>& workers() const { return workers_; }

  Expected<SweepOutcome> run(const Sweep& sweep, SweepStore& store, const SweepOptions& options);

 private:
  class Run;
  static void end(Worker& worker);

  std::vector<Worker> workers_;
};

// What a worker does until the other end is closed.
void serve_leases(const Sweep& sweep, int socket);

// All of it; false: the other end is gone.
bool send_all(int socket, std::string_view bytes);

// Rows of a lease as bytes between two processes of the same program.
std::string bytes_of(const AnsweredLease& answered);
// Nothing when the bytes are not what bytes_of makes.
std::optional<AnsweredLease> answered_of(std::string_view bytes);

}  // namespace trainyard
