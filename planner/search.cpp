#include <algorithm>
#include <limits>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "model/first_exception.h"
#include "model/interrupted.h"
#include "planner/bound/bound.h"
#include "planner/findings/baseline.h"
#include "planner/offered.h"
#include "planner/planner.h"
#include "planner/request.h"
#include "planner/search/enumeration.h"
#include "planner/search/ranking.h"
#include "planner/search/worker.h"
#include "planner/time_limit.h"

namespace trainyard {
namespace {

int thread_count(const SearchOptions& options) {
  const unsigned processors = std::thread::hardware_concurrency();
  return options.threads > 0 ? options.threads : std::max(1, static_cast<int>(processors));
}

// The calling thread runs the first worker, which reports progress. All workers take from one
// queue: where no thread could be started for some, the others do their work.
void in_parallel(std::vector<Worker>& workers, void (Worker::*task)()) {
  FirstException failed;
  std::vector<std::jthread> pool;
  pool.reserve(workers.size());
  for (std::size_t i = 1; i < workers.size(); ++i) {
    if (!add_thread(pool, failed, [task, &worker = workers[i]] { (worker.*task)(); })) break;
  }
  (workers.front().*task)();
  pool.clear();
  failed.rethrow();
}

// Shares a search's time limit out: listing the degrees may take half of it.
class TimeLimit {
 public:
  explicit TimeLimit(const SearchOptions& options) : options_(options) {}

  bool is_half_over() const {
    if (is_set(options_.interrupted)) return true;
    return options_.time_limit > Seconds(0) && watch_.elapsed() >= options_.time_limit / 2;
  }
  SearchOptions options_for_rest() const {
    SearchOptions rest = options_;
    if (rest.time_limit > Seconds(0))
      rest.time_limit -= std::min(watch_.elapsed(), rest.time_limit / 2);
    return rest;
  }
  // For what follows the search: the time that it left.
  SearchOptions options_for_end() const {
    SearchOptions end = options_;
    if (end.time_limit > Seconds(0)) end.time_limit = left_until(end.time_limit, watch_.elapsed());
    return end;
  }

 private:
  const SearchOptions& options_;
  const Stopwatch watch_;
};

bool is_among(const std::vector<Candidate>& candidates, const Plan& plan) {
  return std::ranges::any_of(
      candidates, [&plan](const Candidate& known) { return same_choices(known.plan, plan); });
}

// Offers the baselines to a search that was stopped, as far as there is time: its result is then no
// worse than what people use without a planner.
void offer_baselines(SharedSearch& shared) {
  const SearchOptions& options = shared.options;
  if (options.space != SearchSpace{}) return;
  const auto value = [&](Objective objective, const Candidate& found) {
    return objective_value(shared.job, options.valuation, objective, found.plan, found.estimate);
  };
  const auto offer = [&](const Expected<Candidate>& baseline) {
    if (!baseline || !baseline->estimate.feasible) return;
    if (is_among(shared.candidates(), baseline->plan)) return;
    if (!offers(shared.job.job, baseline->plan)) return;
    const Values values{value(options.objective, *baseline),
                        options.second ? value(*options.second, *baseline) : 0};
    shared.offer(values, baseline->plan, baseline->estimate);
  };
  offer(rule_of_thumb(shared.job, options.base, shared.evaluate));
  for (const int zero_stage : {0, 3}) {
    if (shared.closing_is_over()) return;
    offer(data_parallel_only(shared.job, zero_stage, options.base, shared.evaluate));
  }
}

struct Looked {
  SearchCounts counts;
  std::vector<SearchNode> expanded;
};

Looked run(SharedSearch& shared) {
  std::vector<Worker> workers;
  const int threads = thread_count(shared.options);
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(shared, i == 0);
  while (shared.start_round()) {
    in_parallel(workers, &Worker::bound_nodes);
    shared.start_pricing();
    in_parallel(workers, &Worker::expand_nodes);
  }
  shared.start_closing();
  const bool complete = shared.space.complete && !shared.stopped();
  if (shared.aim == Aim::best && !complete) offer_baselines(shared);
  if (shared.start_open_families()) in_parallel(workers, &Worker::bound_open_families);
  Looked all;
  for (const Worker& worker : workers) {
    all.counts += worker.counts;
    all.expanded.insert(all.expanded.end(), worker.expanded.begin(), worker.expanded.end());
  }
  return all;
}

double gap_of(const SharedSearch& shared, const SearchResult& result) {
  if (result.optimal) return 0;
  if (result.plans.empty()) return 1;
  const auto& [plan, estimate, confirmation] = result.plans.front();
  const SearchOptions& options = shared.options;
  const double bound = shared.open_bound();
  const double best =
      objective_value(shared.job, options.valuation, options.objective, plan, estimate);
  return best > bound ? (best - bound) / best : 0;
}

// A guess of the step for sorting: bounds know no bubble, so a third of 1F1B's is added.
double with_bubble(const SharedSearch& shared, const SearchNode& node) {
  const Degrees& degrees = shared.space.degrees[node.degrees];
  const ShapeRange& range = shared.space.ranges[degrees.shapes][node.range];
  const double microbatches =
      static_cast<double>(shared.job.job.training.global_batch) / degrees.data / range.micro_batch;
  return node.bound.first * (1 + (degrees.pipeline - 1) / (3 * microbatches));
}

// Nodes whose bound is below the best plan's value, the most promising first.
std::vector<SearchNode> below_best(const SharedSearch& shared, std::vector<SearchNode> nodes,
                                   const std::vector<Candidate>& plans) {
  if (!plans.empty()) {
    const Candidate& best = plans.front();
    const double value = objective_value(shared.job, shared.options.valuation,
                                         shared.options.objective, best.plan, best.estimate);
    std::erase_if(nodes, [value](const SearchNode& node) { return node.bound.first >= value; });
  }
  const auto key = [&shared](const SearchNode& node) {
    return std::tuple(with_bubble(shared, node), node.degrees, node.range);
  };
  std::ranges::sort(nodes, {}, key);
  nodes.resize(std::min(nodes.size(), kMostToDeal));
  return nodes;
}

// Adds the node's plan under every sharding over all ranks with everything on the device.
void add_sharded(const SharedSearch& shared, const SearchNode& node, PlanRequest request,
                 std::vector<Plan>& plans) {
  const Job& job = shared.job.job;
  const Degrees& degrees = shared.space.degrees[node.degrees];
  const std::vector<Sharding>& shardings = shared.space.shardings[degrees.shardings];
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    if (shardings[i].on_device != i || shardings[i].over_all != i) continue;
    set_sharding(shardings[i], request);
    auto sharded = plan_if_legal(request, job.model, job.cluster, job.training);
    if (sharded) plans.push_back(*std::move(sharded));
  }
}

// The plans of these nodes with each recomputation that the space names; else with none, because
// dealing layers then chooses the recomputation of each stage as well.
std::vector<Plan> plans_to_deal(const SharedSearch& shared, const std::vector<SearchNode>& nodes) {
  const SearchSpace& asked = shared.options.space;
  std::vector<RecomputeChoice> choices = {RecomputeChoice()};
  if (!asked.recompute.empty()) choices = shared.space.recomputes;
  std::vector<Plan> plans;
  for (const SearchNode& node : nodes) {
    const Degrees& degrees = shared.space.degrees[node.degrees];
    const ShapeRange& range = shared.space.ranges[degrees.shapes][node.range];
    const auto plan = plan_of_node(shared.job, shared.space, degrees, range, shared.options.base);
    if (!plan) continue;
    for (const RecomputeChoice& choice : choices) {
      if (!choice.is_for(degrees.pipeline)) continue;
      PlanRequest request = request_of(*plan);
      set_recompute(choice, request);
      add_sharded(shared, node, std::move(request), plans);
    }
  }
  return plans;
}

SearchResult search_once(const PreparedJob& job, const SearchOptions& options,
                         const Evaluator& evaluate, NamedStages stages) {
  const TimeLimit limit(options);
  const Enumeration space = enumerate(
      job, options.space, options.base, [&limit] { return limit.is_half_over(); }, stages);
  const SearchOptions with_rest = limit.options_for_rest();
  SharedSearch shared(job, with_rest, evaluate, space, Aim::best);
  Looked looked = run(shared);
  const SearchCounts& counts = looked.counts;
  const bool complete = space.complete && !shared.stopped();
  SearchResult result;
  result.plans = shared.candidates();
  result.objective = options.objective;
  result.second = options.second;
  result.space = searched_dimensions(options.space, space);
  result.space_size = shared.space_size;
  result.considered = counts.considered;
  result.pruned_by_memory = counts.pruned_by_memory;
  result.pruned_by_objective = counts.pruned_by_objective;
  result.pruned = counts.pruned_by_memory + counts.pruned_by_objective;
  result.shortfall = counts.infeasible;
  result.infeasible = counts.infeasible.plans;
  result.evaluated = counts.evaluated;
  result.illegal = counts.illegal;
  result.optimal = complete;
  result.gap = gap_of(shared, result);
  const bool any_is_of_interest = options.worth == std::numeric_limits<double>::infinity();
  if (result.plans.empty() && result.optimal && any_is_of_interest) {
    const SearchOptions with_end = limit.options_for_end();
    SharedSearch closest(job, with_end, evaluate, space, Aim::closest);
    run(closest);
    result.closest = closest.candidates();
  }
  if (options.keeps_to_deal && result.optimal) {
    const auto nodes = below_best(shared, std::move(looked.expanded), result.plans);
    result.to_deal = plans_to_deal(shared, nodes);
  }
  return result;
}

// Whether the space names ZeRO stages, and the stack runs some stages with some degrees only.
bool stages_ask_for_degrees(const Stack& stack, const SearchSpace& space) {
  const StackLimits& limits = stack.limits;
  return !space.zero_stage.empty() &&
         !(stack.zero_stages.empty() && stack.pipeline_zero_stages.empty() &&
           limits.tensor_zero_stages.empty() && limits.context_zero_stages.empty() &&
           limits.experts != ExpertSpread::over_shards);
}

}  // namespace

Evaluator analytic_evaluator(const PreparedJob& job) {
  const auto estimator = std::make_shared<const Estimator>(job);
  return [estimator](const Plan& plan, Estimate& out) { estimator->estimate(plan, out); };
}

// Searches named ZeRO stages with the degrees that the stack runs them with; where none of these
// plans fits, with any degrees.
SearchResult search(const PreparedJob& job, const SearchOptions& options,
                    const Evaluator& evaluate) {
  if (!stages_ask_for_degrees(job.job.training.stack, options.space)) {
    return search_once(job, options, evaluate, NamedStages::any);
  }
  const TimeLimit limit(options);
  SearchResult found = search_once(job, options, evaluate, NamedStages::as_run);
  const bool any_is_of_interest = options.worth == std::numeric_limits<double>::infinity();
  if (!found.plans.empty() || !found.optimal || !any_is_of_interest) return found;
  return search_once(job, limit.options_for_end(), evaluate, NamedStages::any);
}

}  // namespace trainyard
