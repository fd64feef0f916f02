// Improves the best plans of a search in what the search leaves out: other layers on each stage, a
// recomputation of each stage's own (planner/layers/allocation.h, layer_moves.h), a pass order
// found by search (planner/passes/auto_schedule.h), another order of the ranks or another sharding
// group. The best result is compared with the named schedules of its degrees, so that none of them
// is faster. The caller's evaluator prices every change. `SearchResult::optimal` does not cover an
// improvement, so it carries a bound of its own. Only five plans of a long list are changed,
// because each takes up to a second: the first of each split of the network over devices, then the
// others.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/planner.h"

namespace trainyard {

struct Improvement {
  Candidate candidate;
  Plan of;  // the plan that was changed
  // What was changed in it.
  bool layers = false, recompute = false;  // of each stage
  bool order = false;      // a pass list, another named schedule or number of chunks
  bool placement = false;  // the order of the ranks
  bool sharding = false;   // the sharding group
  Seconds bound;           // lower bound of the step with these degrees, whatever is changed
};

constexpr std::size_t kMostImproved = 5;
constexpr int kImprovedAmong = 16;  // plans of a search that improve() looks at, however many

// Index of the plan that was changed among `plans`; nothing: it is none of them.
std::optional<std::size_t> place_of_changed(const Improvement& improvement,
                                            const std::vector<Candidate>& plans);

// Whether all degrees of parallelism are the same.
bool same_split(const Plan& a, const Plan& b);

// Changes kMostImproved of the first kImprovedAmong `plans` (best first, or those that miss the
// memory by the least), and deals layers in `to_deal` (SearchResult::to_deal) under every named
// schedule. Returns the best result that beats the first of `plans` in the search's objective;
// nothing: none does. An order of the ranks that the stack is not known to run is taken only where
// no other change gains. `options` are those of the search; once interrupted, or after its time
// limit, the result is the best so far.
std::optional<Improvement> improve(const PreparedJob& job, const SearchOptions& options,
                                   const std::vector<Candidate>& plans, const Evaluator& evaluate,
                                   const std::vector<Plan>& to_deal = {});

}  // namespace trainyard
