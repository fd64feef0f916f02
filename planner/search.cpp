#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "planner/bound.h"
#include "planner/enumeration.h"
#include "planner/planner.h"
#include "planner/ranking.h"

namespace trainyard {
namespace {

using Clock = std::chrono::steady_clock;

// Combinations between two looks at the clock, and two reports of progress.
constexpr std::int64_t kClockInterval = 64;
constexpr std::int64_t kProgressInterval = 4096;

struct Counts {
  std::int64_t considered = 0, pruned = 0, infeasible = 0, evaluated = 0;

  Counts& operator+=(const Counts& other) {
    considered += other.considered;
    pruned += other.pruned;
    infeasible += other.infeasible;
    evaluated += other.evaluated;
    return *this;
  }
};

// What all workers share. They take degrees from the list in turn; everything else they keep to
// themselves until the end.
struct Work {
  const PreparedJob& job;
  const SearchOptions& options;
  const Evaluator& evaluate;
  const Enumeration& space;
  ParameterShares shares;
  std::int64_t space_size = 0;
  bool prune = true;
  Clock::time_point deadline = Clock::time_point::max();
  std::atomic<std::size_t> next = 0;
  std::atomic<std::int64_t> considered = 0;  // for progress
  std::atomic<bool> stopped = false;

  bool out_of_time() {
    const bool interrupted = options.interrupted != nullptr && options.interrupted->load();
    if (interrupted || Clock::now() >= deadline) {
      stopped = true;
    }
    return stopped;
  }
};

class Worker {
 public:
  Worker(Work& work, bool reports)
      : best(work.options.top),
        closest(work.options.top),
        work_(work),
        reports_(reports && work.options.progress),
        request_(work.options.base),
        capacity_(work.job.job.cluster.device.memory) {}

  void run() {
    for (std::size_t i = work_.next++; i < work_.space.degrees.size(); i = work_.next++) {
      const Degrees& degrees = work_.space.degrees[i];
      set(degrees);
      for (const int stage : work_.space.zero_stages_of(degrees)) {
        if (!consider(degrees, stage)) {
          return;
        }
      }
    }
  }

  Ranking best, closest;
  Counts counts;

 private:
  void set(const Degrees& degrees) {
    request_.tensor_parallel = degrees.tensor;
    request_.context_parallel = degrees.context;
    request_.pipeline_parallel = degrees.pipeline;
    request_.data_parallel = degrees.data;
    request_.expert_parallel = degrees.expert;
    request_.expert_tensor_parallel = degrees.expert_tensor;
  }

  // All plans of these degrees and ZeRO stage; false when the search is to stop.
  bool consider(const Degrees& degrees, int zero_stage) {
    const Offload& offload = work_.options.base.offload;
    if (work_.prune &&
        states_bound(work_.job, work_.shares, degrees, zero_stage, offload) > capacity_) {
      const std::int64_t plans = work_.space.plans_per_zero_stage(degrees);
      counts.pruned += plans;
      return go_on(plans);
    }
    request_.zero_stage = zero_stage;
    for (const Shape& shape : work_.space.shapes[degrees.shapes]) {
      request_.micro_batch = shape.micro_batch;
      request_.virtual_stages = shape.virtual_stages;
      request_.schedule = shape.schedule->name;
      for (const Recompute& recompute : work_.space.recomputes) {
        request_.recompute = recompute;
        price();
        if (!go_on(1)) {
          return false;
        }
      }
    }
    return true;
  }

  void price() {
    const Job& job = work_.job.job;
    const auto plan = plan_if_legal(request_, job.model, job.cluster, job.training);
    if (!plan) {
      return;
    }
    if (bounded_out(*plan)) {
      ++counts.pruned;
      return;
    }
    work_.evaluate(*plan, estimate_);
    ++counts.evaluated;
    if (estimate_.feasible) {
      best.offer(objective_value(work_.options.objective, estimate_), *plan, estimate_);
    } else {
      ++counts.infeasible;
      closest.offer(estimate_.peak_memory.value(), *plan, estimate_);
    }
  }

  // Playing a schedule costs a hundred estimates: first what it takes if no stage ever waits.
  bool bounded_out(const Plan& plan) {
    if (!work_.prune || plan.schedule->closed_span != nullptr) {
      return false;
    }
    estimate_bound(work_.job, plan, estimate_);
    return estimate_.feasible &&
           !best.has_room_for(objective_value(work_.options.objective, estimate_));
  }

  bool go_on(std::int64_t combinations) {
    counts.considered += combinations;
    since_clock_ += combinations;
    if (since_clock_ < kClockInterval) {
      return true;
    }
    const std::int64_t considered = work_.considered += since_clock_;
    since_report_ += since_clock_;
    since_clock_ = 0;
    if (reports_ && since_report_ >= kProgressInterval) {
      since_report_ = 0;
      work_.options.progress(static_cast<double>(considered) /
                             static_cast<double>(work_.space_size));
    }
    return !work_.out_of_time();
  }

  Work& work_;
  bool reports_;
  PlanRequest request_;
  Bytes capacity_;
  Estimate estimate_;
  std::int64_t since_clock_ = 0;
  std::int64_t since_report_ = 0;
};

int thread_count(const SearchOptions& options) {
  const unsigned processors = std::thread::hardware_concurrency();
  return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(processors));
}

Clock::time_point deadline_of(Seconds limit) {
  constexpr Seconds kNever(1e9);  // beyond, the clock's own range would be left
  if (limit <= Seconds(0) || limit >= kNever) {
    return Clock::time_point::max();
  }
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit.value()));
}

std::vector<Candidate> candidates(const Ranking& ranking) {
  std::vector<Candidate> result;
  for (const RankedCandidate& entry : ranking.entries()) {
    result.push_back(entry.candidate);
  }
  return result;
}

// The calling thread is the first worker, and the one that reports progress.
SearchResult run_workers(Work& work) {
  std::vector<Worker> workers;
  const int threads = thread_count(work.options);
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(work, i == 0);
  }
  {
    std::vector<std::jthread> pool;
    for (int i = 1; i < threads; ++i) {
      pool.emplace_back([&worker = workers[static_cast<std::size_t>(i)]] { worker.run(); });
    }
    workers.front().run();
  }
  Worker& first = workers.front();
  for (std::size_t i = 1; i < workers.size(); ++i) {
    first.best.merge(workers[i].best);
    first.closest.merge(workers[i].closest);
    first.counts += workers[i].counts;
  }
  SearchResult result;
  result.plans = candidates(first.best);
  result.closest = result.plans.empty() ? candidates(first.closest) : std::vector<Candidate>{};
  result.considered = first.counts.considered;
  result.pruned = first.counts.pruned;
  result.infeasible = first.counts.infeasible;
  result.evaluated = first.counts.evaluated;
  result.optimal = !work.stopped;
  return result;
}

double gap_of(const SearchResult& result, double bound, Objective objective) {
  if (result.optimal) {
    return 0;
  }
  if (result.plans.empty()) {
    return 1;
  }
  const double best = objective_value(objective, result.plans.front().estimate);
  return best > bound ? (best - bound) / best : 0;
}

}  // namespace

double objective_value(Objective objective, const Estimate& estimate) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  switch (objective) {
    case Objective::step_time:
      return estimate.step_time.value();
    case Objective::cost:
      return estimate.cost_per_step ? estimate.cost_per_step->value() : kUnknown;
    case Objective::energy:
      return estimate.energy_per_step ? estimate.energy_per_step->value() : kUnknown;
    case Objective::memory:
      return estimate.peak_memory.value();
  }
  return kUnknown;
}

SearchResult search(const PreparedJob& job, const SearchOptions& options,
                    const Evaluator& evaluate) {
  const Enumeration space = enumerate(job, options.space);
  const ParameterShares shares = parameter_shares(job);
  const Clock::time_point deadline = deadline_of(options.time_limit);
  const std::int64_t space_size = space.size();
  const auto run = [&](bool prune) {
    Work work{.job = job,
              .options = options,
              .evaluate = evaluate,
              .space = space,
              .shares = shares,
              .space_size = space_size,
              .prune = prune,
              .deadline = deadline};
    return run_workers(work);
  };
  SearchResult result = run(true);
  // Nothing fits: a plan that was pruned by its states may still miss by less than one that was
  // not.
  if (result.plans.empty() && result.optimal && result.pruned > 0) {
    result = run(false);
  }
  result.space = searched_dimensions();
  result.space_size = space_size;
  result.gap = gap_of(result, objective_bound(job, shares, options.objective, options.base.offload),
                      options.objective);
  return result;
}

}  // namespace trainyard
