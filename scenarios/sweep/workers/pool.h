// Workers that answer leases of a sweep over sockets, wherever they run. The calling process hands
// out the leases and writes the result file, so nothing that a worker does can harm the file. If a
// worker dies, others answer its lease; a point on which two workers died is refused. Workers talk
// only to the calling process.
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
    pid_t process = 0;  // if it is a child of this process; else 0
    std::optional<Lease> lease;
    std::string received;  // part of an answer that has arrived so far
  };

  WorkerPool() = default;
  WorkerPool(WorkerPool&&) noexcept = default;
  WorkerPool& operator=(WorkerPool&&) = delete;
  ~WorkerPool();  // closes the sockets and kills the children that are left

  void add(Worker worker) { workers_.push_back(std::move(worker)); }
  const std::vector<Worker>& workers() const { return workers_; }

  Expected<SweepOutcome> run(const Sweep& sweep, SweepStore& store, const SweepOptions& options);

 private:
  class Run;
  static void end(Worker& worker);

  std::vector<Worker> workers_;
};

// Answers leases, as a worker, until the other end of the socket is closed.
void serve_leases(const Sweep& sweep, int socket);

// Sends all bytes; false: the other end is gone.
bool send_all(int socket, std::string_view bytes);

// An answered lease as bytes, for two processes of the same program.
std::string bytes_of(const AnsweredLease& answered);
// None if the bytes are not from bytes_of.
std::optional<AnsweredLease> answered_of(std::string_view bytes);

}  // namespace trainyard
