// Searches the plans of a job for the best ones by branch and bound. A node is a set of degrees
// with a micro-batch; a node whose lower bound on time or memory shows that none of its plans can
// be listed is pruned (planner/bound/step_bound.h), the others are expanded in the order of their
// bounds. The caller passes the evaluator that prices plans (analytic or simulated). The bounds are
// those of the analytic estimate: where another evaluator prices a plan below them, the search may
// miss that plan.
//
// The result does not depend on the number of threads: plans of equal value are ordered by peak
// memory, step time, and then by the plan itself. It does depend on when a time limit or an
// interruption stopped the search.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "planner/objective.h"
#include "planner/search_space.h"

namespace trainyard {

// Prices a legal plan. Called from several threads at once, each with its own `out`.
using Evaluator = std::function<void(const Plan& plan, Estimate& out)>;

// Prices plans by the closed forms of model/cost/estimate.h. Requires: `job` outlives the result.
Evaluator analytic_evaluator(const PreparedJob& job);

struct SearchOptions {
  SearchSpace space;
  // Values of the plan's keys that are not searched (overlap, layers per stage, …).
  PlanRequest base;
  Objective objective = Objective::step_time;
  int top = 5;                                     // best plans to keep
  int threads = 0;                                 // 0: as many as there are processors
  Seconds time_limit{0};                           // 0: none
  std::function<void(double fraction)> progress;   // called now and then; may be empty
  const std::atomic<bool>* interrupted = nullptr;  // set by the caller to stop early
  Valuation valuation;
  std::optional<Objective> second;  // set: the Pareto front of both objectives replaces the top
  // Plans of a larger objective value are left out. Where it is finite, `closest` stays empty.
  double worth = std::numeric_limits<double>::infinity();
  bool keeps_to_deal = false;  // whether to fill SearchResult::to_deal
};

// The price of a plan by a second evaluator, the simulator (planner/findings/confirm.h).
struct Confirmation {
  std::optional<Estimate> simulated;
  std::string reason;    // why `simulated` is empty
  bool departs = false;  // the simulated step lies outside the interval of the estimate
};

struct Candidate {
  Plan plan;
  Estimate estimate;
  std::optional<Confirmation> confirmation;
};

// Numbers of plans that were priced and do not fit: in all, and by whether states or activations
// take more of their fullest stage.
struct Shortfall {
  std::int64_t plans = 0, by_states = 0, by_activations = 0;
};

constexpr std::size_t kMostToDeal = 128;  // nodes that SearchResult::to_deal has plans of

struct SearchResult {
  std::vector<Candidate> plans;    // feasible ones, best first; a front by its first objective
  std::vector<Candidate> closest;  // when none fits: those that miss the memory by the least
  Objective objective = Objective::step_time;  // what was minimised
  std::optional<Objective> second;
  std::vector<std::string> space;  // the dimensions that `optimal` covers
  std::int64_t space_size = 0;  // combinations of degrees, schedule, ZeRO, recompute, micro-batch
  // Numbers of such combinations: considered = pruned + evaluated + illegal. Infeasible ones are
  // among the evaluated.
  std::int64_t considered = 0, pruned = 0, infeasible = 0, evaluated = 0, illegal = 0;
  // Pruned because they cannot fit, and by a bound on the objective; their sum is `pruned`.
  std::int64_t pruned_by_memory = 0, pruned_by_objective = 0;
  Shortfall shortfall;  // of the infeasible ones
  // With `keeps_to_deal`: pipelines with even layers whose bound is below the best plan's value, so
  // that they may beat it once their layers are dealt otherwise (planner/improvement.h). One of
  // each degrees, micro-batch and ZeRO stage, from the kMostToDeal most promising nodes, in order.
  std::vector<Plan> to_deal;
  bool optimal = false;  // everything in the space was considered
  double gap = 0;        // 0 when optimal; else the best objective falls by this fraction at most

  // The plans that fit; where none does, those that miss the memory by the least.
  const std::vector<Candidate>& plans_or_closest() const { return plans.empty() ? closest : plans; }
  std::vector<Candidate>& plans_or_closest() { return plans.empty() ? closest : plans; }
};

SearchResult search(const PreparedJob& job, const SearchOptions& options,
                    const Evaluator& evaluate);

}  // namespace trainyard
