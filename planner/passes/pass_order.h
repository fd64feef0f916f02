// A pass order found by search, for schedules with one chunk a stage: from what every stage's
// passes take, the sends between them and how many micro-batches' activations each can keep.
//
// Greedy list scheduling as in the zero-bubble paper's automatic scheduler (Qi et al. 2023, §3.1):
// forward passes ahead of the first backward as far as the stage's limits go, then these and input
// gradients in turn, weight gradients where a stage would wait or has no room. Then a sweep over
// limits with input gradients first, and a search stage by stage; named schedules that fit the
// memory take part, so the result is never worse than one of them. Then single passes of the best
// lists are moved, within a budget.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/schedule/schedule.h"
#include "model/units.h"

namespace trainyard {

struct PassOrderProblem {
  int microbatches = 1;
  std::vector<PassTimes> stages;
  Seconds send;                        // between neighbouring stages
  std::vector<double> most_in_flight;  // per stage: micro-batches whose activations it can keep
  double kept_for_weights = 1;  // share of them that outlives the input gradient until its weights'
  bool barrier = false;  // the makespan is minimised instead of the longest span (handbook §8)
};

struct PassOrder {
  PassList passes;
  Seconds time;   // longest span, or makespan under a barrier, as the player has it
  Seconds bound;  // no order that keeps the limits takes less
};

// Passes that the search may place: some 0.4 s on one core.
constexpr std::int64_t kPassOrderBudget = 5'000'000;

// The best order found; nothing where a stage cannot keep even one micro-batch. The same for the
// same problem, but for a search that the caller has `interrupted`: it brings the best so far.
// Requires: m ≥ 1, a limit for every stage, 0 ≤ kept_for_weights ≤ 1.
std::optional<PassOrder> find_pass_order(const PassOrderProblem& problem,
                                         std::int64_t budget = kPassOrderBudget,
                                         const std::atomic<bool>* interrupted = nullptr);

// A stage does all passes of the stages behind it between its first and its last; it fills the wait
// for the first gradient with what it has room for.
Seconds pass_order_bound(const PassOrderProblem& problem);

// Whether no stage ever keeps more than it can.
bool keeps_limits(const PassOrderProblem& problem, const PassList& passes);

}  // namespace trainyard
