// Searches the plans of a job for the best ones. The evaluator is the caller's (analytic or
// simulated), so the planner knows no simulator. This search enumerates every legal plan of the
// space and so its answer is optimal within it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "model/cost/estimate.h"
#include "model/job.h"
#include "model/plan/plan.h"
#include "planner/search_space.h"

namespace trainyard {

enum class Objective { step_time, cost, energy, memory };

// Prices a legal plan. Called from several threads at once, each with its own `out`.
using Evaluator = std::function<void(const Plan& plan, Estimate& out)>;

struct SearchOptions {
  SearchSpace space;
  Objective objective = Objective::step_time;
  int top = 5;                                     // best plans to keep
  int threads = 0;                                 // 0: as many as there are processors
  Seconds time_limit{0};                           // 0: none
  std::function<void(double fraction)> progress;   // called now and then; may be empty
  const std::atomic<bool>* interrupted = nullptr;  // set by the caller to stop early
};

struct Candidate {
  Plan plan;
  Estimate estimate;
};

struct SearchResult {
  std::vector<Candidate> plans;    // best first; feasible ones only
  std::vector<Candidate> closest;  // when none fits: those that miss the memory by the least
  std::vector<std::string> space;  // the dimensions that `optimal` covers
  std::int64_t space_size = 0;  // combinations of degrees, schedule, ZeRO, recompute, micro-batch
  std::int64_t considered = 0, pruned = 0, infeasible = 0, evaluated = 0;
  bool optimal = false;  // everything in the space was considered
  double gap = 0;        // 0 when optimal
};

SearchResult search(const PreparedJob& job, const SearchOptions& options,
                    const Evaluator& evaluate);

}  // namespace trainyard
