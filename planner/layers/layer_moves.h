// Local search that starts from a deal of layers to stages (planner/layers/allocation.h): layers
// move from one stage to another as long as that makes the plan better, and each stage recomputes
// as little as fits, or more where that is better. The caller's evaluator prices every move, so
// that what the dynamic program's formula leaves out counts: gradient communication, the optimizer
// and the exact memory. It ends where no move gains, or with its budget: a local optimum, no proof.
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
  bool by_step = true;  // a plan whose longest stage alone takes longer than a step is no better
  const std::atomic<bool>* interrupted = nullptr;
};

// Returns `start` or a better plan. Each deal of layers that is looked at takes 1 of `budget`, its
// price some more. Requires: the problem is problem_of_moves() of the plan, which has been priced;
// estimates have the memory of every stage.
Candidate move_layers(const LayerMoves& moves, Candidate start, int& budget);

}  // namespace trainyard
