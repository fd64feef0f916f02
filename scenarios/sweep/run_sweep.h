// Answers what is missing in a result file: threads answer leases, the calling thread writes them.
// What is written does not depend on the number of threads or on what was there before.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "scenarios/sweep/results/store.h"
#include "scenarios/sweep/sweep.h"
#include "scenarios/sweep/workers/lease_queue.h"

namespace trainyard {

class PointAnswerer;

// Runs a scenario, given as a document, on hardware: what that is, is the caller's business.
struct HardwareRun {
  Seconds step_time;  // mean of the measured steps
  Bytes peak_memory;  // of the fullest rank
};
using Runner = std::function<Expected<HardwareRun>(const std::string& scenario)>;

struct SweepOptions {
  int workers = 1;
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(double fraction)> progress;  // on the calling thread; may be empty
  Runner runner;                                  // of "evaluate": "run"
};

struct SweepOutcome {
  std::int64_t points = 0;    // of the sweep
  std::int64_t found = 0;     // were there before
  std::int64_t answered = 0;  // now; those that the constraints leave out are counted
  int lost_workers = 0;       // whose leases went to others

  bool complete() const { return found + answered == points; }
};

Expected<SweepOutcome> run_sweep(const Sweep& sweep, SweepStore& store,
                                 const SweepOptions& options);

// What is missing, for workers to lease.
struct SweepStart {
  LeaseQueue queue;
  SweepOutcome outcome;  // so far
};
Expected<SweepStart> start_sweep(const Sweep& sweep, SweepStore& store, int workers);

// Commits what was answered, whatever ended the run, and says how it ended.
Expected<SweepOutcome> end_sweep(const Expected<void>& run, SweepStore& store,
                                 const SweepOutcome& outcome);

// Rows of a lease; stops early, with nothing, when interrupted.
std::optional<AnsweredLease> answer_lease(PointAnswerer& answerer, Lease lease,
                                          const std::atomic<bool>* interrupted);

// Writes leases as they come; commits them many times a second.
class SweepWriter {
 public:
  SweepWriter(SweepStore& store, const SweepOptions& options, SweepOutcome& outcome)
      : store_(store), options_(options), outcome_(outcome) {}

  Expected<void> write(const AnsweredLease& answered);
  Expected<void> commit_when_due();

 private:
  using Clock = std::chrono::steady_clock;

  SweepStore& store_;
  const SweepOptions& options_;
  SweepOutcome& outcome_;
  Clock::time_point committed_ = Clock::now();
};

}  // namespace trainyard
