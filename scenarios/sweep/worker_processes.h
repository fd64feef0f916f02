// A sweep answered by processes of its own on this machine: each takes a lease, answers it and
// hands the rows back; the calling process writes. A process that dies loses its lease, and the
// others answer it: nothing that a worker does can harm the result file.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "scenarios/sweep/run_sweep.h"

namespace trainyard {

class WorkerProcesses {
 public:
  // Requires: no thread has been started yet. Before the result file is opened, so that workers
  // hold nothing of it. Refers to `sweep`.
  static Expected<WorkerProcesses> start(const Sweep& sweep, int count);
  WorkerProcesses(WorkerProcesses&&) noexcept = default;
  WorkerProcesses& operator=(WorkerProcesses&&) = delete;
  ~WorkerProcesses();  // ends those that are left

  Expected<SweepOutcome> run(const Sweep& sweep, SweepStore& store, const SweepOptions& options);

 private:
  struct Worker {
    pid_t process = -1;
    int socket = -1;
    std::optional<Lease> lease;
    std::string received;  // of an answer that is not complete yet
  };
  class Run;

  WorkerProcesses() = default;
  static void end(Worker& worker);

  std::vector<Worker> workers_;
};

// Rows of a lease as bytes between two processes of the same program.
std::string bytes_of(const AnsweredLease& answered);
// Nothing when the bytes are not what bytes_of makes.
std::optional<AnsweredLease> answered_of(std::string_view bytes);

}  // namespace trainyard
