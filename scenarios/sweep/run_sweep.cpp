#include "scenarios/sweep/run_sweep.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "model/first_exception.h"
#include "model/interrupted.h"
#include "scenarios/sweep/answer.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostPointsLeased = 512;
constexpr std::chrono::milliseconds kBetweenCommits{20};

// What the threads share: leases to answer, and answered leases to write.
class LeaseExchange {
 public:
  LeaseExchange(LeaseQueue queue, int workers)
      : queue_(std::move(queue)), room_(2 * static_cast<std::size_t>(workers)), busy_(workers) {}

  std::optional<Lease> next() {
    const std::lock_guard lock(mutex_);
    return stopped_ ? std::nullopt : queue_.next();
  }
  // Waits for room, so that the leases that are answered but not yet written are bounded.
  void deliver(AnsweredLease answered) {
    std::unique_lock lock(mutex_);
    written_.wait(lock, [this] { return answered_.size() < room_ || stopped_; });
    answered_.push_back(std::move(answered));
    delivered_.notify_one();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --busy_;
    delivered_.notify_one();
  }
  // Everything delivered since the last call; waits a little if there is nothing.
  std::deque<AnsweredLease> collect() {
    std::unique_lock lock(mutex_);
    delivered_.wait_for(lock, kBetweenCommits, [this] { return !answered_.empty() || busy_ == 0; });
    written_.notify_all();
    return std::exchange(answered_, {});
  }
  bool is_over() {
    const std::lock_guard lock(mutex_);
    return busy_ == 0 && answered_.empty();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    written_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable delivered_, written_;
  LeaseQueue queue_;
  std::deque<AnsweredLease> answered_;
  std::size_t room_;
  int busy_;
  bool stopped_ = false;
};

void work(const Sweep& sweep, LeaseExchange& exchange, const SweepOptions& options) {
  PointAnswerer answerer(sweep, options.runner);
  while (!is_set(options.interrupted)) {
    const auto lease = exchange.next();
    if (!lease) break;
    auto answered = answer_lease(answerer, *lease, options.interrupted);
    if (answered) exchange.deliver(std::move(*answered));
  }
}

// Makes the threads end, whatever ends the sweep.
class StopAtEnd {
 public:
  explicit StopAtEnd(LeaseExchange& exchange) : exchange_(exchange) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() { exchange_.stop(); }

 private:
  LeaseExchange& exchange_;
};

Expected<void> write_all(LeaseExchange& exchange, SweepWriter& writer) {
  while (!exchange.is_over()) {
    for (const AnsweredLease& answered : exchange.collect()) {
      if (auto done = writer.write(answered); !done) return done;
    }
    if (auto done = writer.commit_when_due(); !done) return done;
  }
  return {};
}

// So many points that a lease takes some milliseconds; slow evaluations get one point.
std::int64_t lease_size(const Sweep& sweep, std::int64_t missing, int workers) {
  const bool quick = sweep.document.evaluate == Evaluation::estimate && sweep.scenario.plan;
  const std::int64_t even = missing / (std::int64_t{8} * workers);
  return quick ? std::clamp(even, std::int64_t{1}, kMostPointsLeased) : 1;
}

}  // namespace

Expected<SweepStart> start_sweep(const Sweep& sweep, SweepStore& store, int workers) {
  auto gaps = store.missing(sweep.points);
  if (!gaps) return tl::unexpected(gaps.error());
  const std::int64_t missing = points_of(*gaps);
  return SweepStart{{std::move(*gaps), lease_size(sweep, missing, workers)},
                    {.points = sweep.points, .found = sweep.points - missing}};
}

Expected<SweepOutcome> end_sweep(const Expected<void>& run, SweepStore& store,
                                 const SweepOutcome& outcome) {
  const auto committed = store.commit();
  if (!run) return tl::unexpected(run.error());
  return committed ? Expected<SweepOutcome>(outcome) : tl::unexpected(committed.error());
}

std::optional<AnsweredLease> answer_lease(PointAnswerer& answerer, Lease lease,
                                          const std::atomic<bool>* interrupted) {
  AnsweredLease answered{lease, {}};
  answered.rows.reserve(static_cast<std::size_t>(lease.count));
  PointRow row;
  for (std::int64_t i = 0; i < lease.count; ++i) {
    if (answerer.answer(lease.first + i, row)) answered.rows.push_back(std::move(row));
    // The interruption may have cut this answer short.
    if (is_set(interrupted)) return std::nullopt;
  }
  return answered;
}

Expected<void> SweepWriter::write(const AnsweredLease& answered) {
  if (auto done = store_.add(answered); !done) return done;
  outcome_.answered += answered.lease.count;
  if (options_.progress) {
    options_.progress(static_cast<double>(outcome_.found + outcome_.answered) /
                      static_cast<double>(outcome_.points));
  }
  return {};
}

Expected<void> SweepWriter::commit_when_due() {
  if (Clock::now() - committed_ < kBetweenCommits) return {};
  committed_ = Clock::now();
  return store_.commit();
}

Expected<SweepOutcome> run_sweep(const Sweep& sweep, SweepStore& store,
                                 const SweepOptions& options) {
  auto start = start_sweep(sweep, store, options.workers);
  if (!start) return tl::unexpected(start.error());
  SweepOutcome& outcome = start->outcome;
  if (outcome.complete()) return outcome;
  LeaseExchange exchange(std::move(start->queue), options.workers);
  FirstException failed;
  std::vector<std::jthread> threads;
  const StopAtEnd stop_at_end(exchange);
  threads.reserve(static_cast<std::size_t>(options.workers));
  for (int i = 0; i < options.workers; ++i) {
    const bool added = add_thread(threads, failed, [&] {
      failed.keep_of([&] { work(sweep, exchange, options); });
      exchange.leave();  // also if the work threw
    });
    if (!added) exchange.leave();
  }
  if (threads.empty()) return failure("", "the system lets this process start no thread");
  SweepWriter writer(store, options, outcome);
  const auto written = write_all(exchange, writer);
  exchange.stop();
  threads.clear();
  auto ended = end_sweep(written, store, outcome);
  failed.rethrow();
  return ended;
}

}  // namespace trainyard
