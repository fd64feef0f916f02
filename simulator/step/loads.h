// How much work each rank has, relative to what the plan says, where batches or expert routing are
// uneven: the rows of TaskGraph::loads, and the entry of a row that applies to an operation.
//
// Kernels and exchanges scale with the tokens of their micro-batch on their replica, the attention
// core with its FLOP, operations on routed tokens with the tokens that reach the rank's experts in
// that layer. Proportional time is exact for operations bound by memory or links and for GEMMs that
// fill the device. Gradient reductions, gathers of weights and the optimizer do not scale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/program/rank_layout.h"
#include "model/program/view.h"
#include "simulator/step/conditions.h"

namespace trainyard {

struct StepLoads {
  // The different rows; none: all loads are 1. A row has the tokens of each micro-batch, then the
  // attention of each, then (where tokens are routed unevenly) the routed tokens of each
  // micro-batch and layer.
  std::vector<std::vector<double>> rows;
  std::vector<std::int32_t> of_rank;  // each rank's index in `rows`
  std::string unlike_because;         // why ranks have different rows; empty: all have the same
  double tokens = 1;                  // tokens of the batch, over the plan's
  double flop = 1;
  bool has_sequences = false;
  bool has_routing = false;
  int microbatches = 0;  // of a replica: the plan's, or fewer if dealt dynamically
  int layers = 0;

  // The index of an operation's load in its rank's row; −1: its load is 1.
  std::int32_t of(const Program& program, const IssuedOperation& issued) const;
};

// Fails where routing is given and the plan has a capacity factor, with which every expert computes
// its full capacity. Requires: check() of the conditions.
Expected<StepLoads> step_loads(const PreparedJob& job, const Plan& plan, const RankLayout& layout,
                               const StepConditions& conditions);

}  // namespace trainyard
