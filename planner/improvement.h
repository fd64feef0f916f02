// What the search leaves out and can still be gained on its best plans: other layers on each stage,
// a recomputation of each stage's own (planner/layers/allocation.h, layer_moves.h), a pass order
// found by search (planner/passes/auto_schedule.h), another order of the ranks or another sharding
// group. The best of it is compared with the named schedules of its degrees, that none of them is
// faster. Every change is priced by the caller's evaluator; what `optimal` says of the search does
// not cover it, so it carries a bound of its own. Of a long list only five plans are changed, for
// each takes up to a second: the first of each split of the network over devices, then the first of
// the others.
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
  Seconds bound;           // of the step with these degrees, whatever else of this is changed
};

constexpr std::size_t kMostImproved = 5;
constexpr int kImprovedAmong = 16;  // plans of a search that improve() looks at, however many

// Where the plan that was changed stands among these; nothing: it is none of them.
std::optional<std::size_t> place_of_changed(const Improvement& improvement,
                                            const std::vector<Candidate>& plans);

// Whether all degrees of parallelism are the same.
bool same_split(const Plan& a, const Plan& b);

// The best change of kMostImproved of the first kImprovedAmong `plans` (best first, or those that
// miss the memory by the least) that beats the first of them in the objective of the search;
// nothing: there is none. An order of the ranks that the stack is not known to run is taken only
// where no other change gains. Beside them `to_deal` (SearchResult::to_deal) under every named
// schedule, as the dynamic program deals them. `options` are those of the search; once interrupted,
// or after its time limit, the best so far.
std::optional<Improvement> improve(const PreparedJob& job, const SearchOptions& options,
                                   const std::vector<Candidate>& plans, const Evaluator& evaluate,
                                   const std::vector<Plan>& to_deal = {});

}  // namespace trainyard
