// Answers the points that are missing in a result file: threads answer leases, the calling thread
// writes them. The rows do not depend on the number of threads or on what was there before.
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

// Runs a scenario, given as a document, on hardware. The caller decides how and where.
struct HardwareRun {
  Seconds step_time;  // mean of the measured steps
  Bytes peak_memory;  // of the fullest rank
};
using Runner = std::function<Expected<HardwareRun>(const std::string& scenario)>;

struct SweepOptions {
  int workers = 1;
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(double fraction)> progress;  // on the calling thread; may be empty
  Runner runner;                                  // for "evaluate": "run"
};

struct SweepOutcome {
  std::int64_t points = 0;    // of the sweep, before its constraints
  std::int64_t found = 0;     // answered before this start
  std::int64_t answered = 0;  // answered now, including points that the constraints exclude
  int lost_workers = 0;       // workers that died; others took their leases

  bool complete() const { return found + answered == points; }
};

Expected<SweepOutcome> run_sweep(const Sweep& sweep, SweepStore& store,
                                 const SweepOptions& options);

// The points that are missing, to be leased to workers.
struct SweepStart {
  LeaseQueue queue;
  SweepOutcome outcome;  // at the start
};
Expected<SweepStart> start_sweep(const Sweep& sweep, SweepStore& store, int workers);

// Commits what was answered, however `run` ended. Returns the outcome, or the error of `run` or of
// the commit.
Expected<SweepOutcome> end_sweep(const Expected<void>& run, SweepStore& store,
                                 const SweepOutcome& outcome);

// The rows of a lease; none if it was interrupted.
std::optional<AnsweredLease> answer_lease(PointAnswerer& answerer, Lease lease,
                                          const std::atomic<bool>* interrupted);

// Writes answered leases as they come, and commits them many times a second.
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
