// Finds a pass order by search, for schedules with one chunk a stage: from the times of every
// stage's passes, the sends between stages, and how many micro-batches' activations each can keep.
//
// Starts with greedy list scheduling as in the zero-bubble paper's automatic scheduler (Qi et al.
// 2023, §3.1): each stage runs forward passes ahead of its first backward pass as far as its limit
// allows, then forward passes and input gradients in turn, and weight gradients where it would wait
// or has no room. Then limits are swept with input gradients first, and policies are changed at
// random. Named schedules that fit the memory take part, so that the result is never worse than one
// of them. Last, single passes of the best lists are moved, within a budget.
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
  double kept_for_weights = 1;  // share of the activations kept from input to weight gradient
  bool barrier = false;  // the makespan is minimised instead of the longest span (handbook §8)
};

struct PassOrder {
  PassList passes;
  Seconds time;   // longest span, or makespan under a barrier, as the player has it
  Seconds bound;  // no order that keeps the limits takes less
};

// How many passes the search may place: some 0.4 s on one core.
constexpr std::int64_t kPassOrderBudget = 5'000'000;

// The best order found; nothing where a stage cannot keep even one micro-batch. The same problem
// gives the same order, unless `interrupted` is set: then it is the best so far.
// Requires: m ≥ 1, a limit for every stage, 0 ≤ kept_for_weights ≤ 1.
std::optional<PassOrder> find_pass_order(const PassOrderProblem& problem,
                                         std::int64_t budget = kPassOrderBudget,
                                         const std::atomic<bool>* interrupted = nullptr);

// Lower bound of PassOrder::time. Between a stage's first and last pass, any stage behind it runs
// all of its forward passes and input gradients; and the stage fills its wait for the first
// gradient only with the forward passes that it has room for.
Seconds pass_order_bound(const PassOrderProblem& problem);

// Whether no stage ever keeps more than `most_in_flight`.
bool keeps_limits(const PassOrderProblem& problem, const PassList& passes);

}  // namespace trainyard
