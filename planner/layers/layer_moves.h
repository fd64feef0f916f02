// Local search from a deal of layers to stages (planner/layers/allocation.h): layers move from one
// stage to another as long as that makes the plan better, and each stage repeats as little as fits,
// or more where that is better. Every move is priced by the caller, so that what the dynamic
// program's formula leaves out counts: what data parallelism and the optimizer add once a step, and
// the exact memory. It ends where no move gains, or with its budget: a good deal, not a proof.
#pragma once

#include <atomic>
#include <functional>

#include "planner/layers/allocation.h"
#include "planner/planner.h"

namespace trainyard {

struct LayerMoves {
  const PreparedJob& job;
  const AllocationProblem&
      problem;  // times of the plan's layers and stages; what a stage may repeat
  const Evaluator& evaluate;
  std::function<bool(const Candidate& a, const Candidate& b)> is_better;
  bool by_step = true;  // no plan is better whose longest stage alone makes a longer step
  const std::atomic<bool>* interrupted = nullptr;
};

// `start` or what is better. Of `budget` a look at other layers takes 1, their price some more.
// Requires: the problem is problem_of_moves() of the plan, which has been priced; prices have the
// memory of every stage.
Candidate move_layers(const LayerMoves& moves, Candidate start, int& budget);

}  // namespace trainyard
