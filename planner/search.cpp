#include <algorithm>
#include <limits>
#include <thread>

#include "planner/bound.h"
#include "planner/enumeration.h"
#include "planner/planner.h"
#include "planner/worker.h"

namespace trainyard {
namespace {

int thread_count(const SearchOptions& options) {
  const unsigned processors = std::thread::hardware_concurrency();
  return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(processors));
}

// The calling thread is the first worker, and the one that reports progress.
void in_parallel(std::vector<Worker>& workers, void (Worker::*task)()) {
  std::vector<std::jthread> pool;
  pool.reserve(workers.size());
  for (std::size_t i = 1; i < workers.size(); ++i) {
    pool.emplace_back([&worker = workers[i], task] { (worker.*task)(); });
  }
  (workers.front().*task)();
}

SearchCounts run(SharedSearch& shared) {
  std::vector<Worker> workers;
  const int threads = thread_count(shared.options);
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(shared, i == 0);
  while (shared.start_round()) {
    in_parallel(workers, &Worker::bound_nodes);
    shared.start_pricing();
    in_parallel(workers, &Worker::expand_nodes);
  }
  SearchCounts counts;
  for (const Worker& worker : workers) counts += worker.counts;
  return counts;
}

std::vector<Candidate> candidates(const Ranking& ranking) {
  std::vector<Candidate> result;
  result.reserve(ranking.entries().size());
  for (const RankedCandidate& entry : ranking.entries()) result.push_back(entry.candidate);
  return result;
}

double gap_of(const SearchResult& result, double bound, Objective objective) {
  if (result.optimal) return 0;
  if (result.plans.empty()) return 1;
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
  const Enumeration space = enumerate(job, options.space, options.base);
  SharedSearch shared(job, options, evaluate, space, Aim::best);
  const SearchCounts counts = run(shared);
  SearchResult result;
  result.plans = candidates(shared.ranking());
  result.space = searched_dimensions();
  result.space_size = shared.space_size;
  result.considered = counts.considered;
  result.pruned_by_memory = counts.pruned_by_memory;
  result.pruned_by_time = counts.pruned_by_time;
  result.pruned = counts.pruned_by_memory + counts.pruned_by_time;
  result.shortfall = counts.infeasible;
  result.infeasible = counts.infeasible.plans;
  result.evaluated = counts.evaluated;
  result.optimal = !shared.stopped();
  result.gap = gap_of(result, shared.open_bound(), options.objective);
  if (result.plans.empty() && result.optimal) {
    SharedSearch closest(job, options, evaluate, space, Aim::closest);
    run(closest);
    result.closest = candidates(closest.ranking());
  }
  return result;
}

}  // namespace trainyard
