// Searches the plans of a job for the best ones: branch and bound over degrees and micro-batch, the
// most promising first, with lower bounds of time and memory (planner/bound/step_bound.h). The
// evaluator is the caller's (analytic or simulated), so the planner knows no simulator; a plan that
// it prices below the bounds of the analytic estimate may be missed.
//
// The result does not depend on the number of threads: equal objectives are ordered by peak memory,
// then by the plan itself. It does depend on when a time limit or an interruption stopped it.
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

// The closed forms of model/cost/estimate.h. `job` outlives it.
Evaluator analytic_evaluator(const PreparedJob& job);

struct SearchOptions {
  SearchSpace space;
  // The keys of a plan that are not searched (overlap, layers per stage, …).
  PlanRequest base;
  Objective objective = Objective::step_time;
  int top = 5;                                     // best plans to keep
  int threads = 0;                                 // 0: as many as there are processors
  Seconds time_limit{0};                           // 0: none
  std::function<void(double fraction)> progress;   // called now and then; may be empty
  const std::atomic<bool>* interrupted = nullptr;  // set by the caller to stop early
  Valuation valuation;
  std::optional<Objective> second;  // the Pareto front of two objectives instead of the top
  // No larger value is of interest, nor what comes closest to fitting where this is finite.
  double worth = std::numeric_limits<double>::infinity();
  bool keeps_to_deal = false;  // for SearchResult::to_deal
};

// What a second evaluator made of a plan: confirm.h.
struct Confirmation {
  std::optional<Estimate> simulated;
  std::string reason;    // without one
  bool departs = false;  // by more than the estimate's interval
};

struct Candidate {
  Plan plan;
  Estimate estimate;
  std::optional<Confirmation> confirmation;
};

// Plans that were priced and do not fit, by what takes most of their fullest stage.
struct Shortfall {
  std::int64_t plans = 0, by_states = 0, by_activations = 0;
};

constexpr std::size_t kMostToDeal = 128;

struct SearchResult {
  std::vector<Candidate> plans;    // best first; feasible ones only. Of a front: by the first value
  std::vector<Candidate> closest;  // when none fits: those that miss the memory by the least
  Objective objective = Objective::step_time;  // what was minimised
  std::optional<Objective> second;
  std::vector<std::string> space;  // the dimensions that `optimal` covers
  std::int64_t space_size = 0;  // combinations of degrees, schedule, ZeRO, recompute, micro-batch
  // Counts are of combinations of the space: considered = pruned + evaluated + illegal (those that
  // turn out to be) + those with states on hosts that need not lie there; infeasible ones are among
  // the evaluated.
  std::int64_t considered = 0, pruned = 0, infeasible = 0, evaluated = 0, illegal = 0;
  // Because they cannot fit, and by a bound on what is minimised; together: pruned.
  std::int64_t pruned_by_memory = 0, pruned_by_objective = 0;
  Shortfall shortfall;  // of the infeasible ones
  // Where they are asked for: plans with pipelines whose bound is below the best plan, which they
  // may beat with other layers (planner/improvement.h). One of each micro-batch, ZeRO stage and
  // degrees, with even layers; the most promising first, of kMostToDeal nodes.
  std::vector<Plan> to_deal;
  bool optimal = false;  // everything in the space was considered
  double gap = 0;        // 0 when optimal; else at most so much of the best objective can be gained

  // The plans that fit; where none does, those that miss the memory by the least.
  const std::vector<Candidate>& plans_or_closest() const { return plans.empty() ? closest : plans; }
  std::vector<Candidate>& plans_or_closest() { return plans.empty() ? closest : plans; }
};

SearchResult search(const PreparedJob& job, const SearchOptions& options,
                    const Evaluator& evaluate);

}  // namespace trainyard
