// How much of what a task's duration or message says each rank has to do, where batches or routing
// are uneven: rows of TaskGraph::loads, and which of their entries an operation has.
//
// Kernels and exchanges go with the tokens of their micro-batch on their replica, the attention
// core with its FLOP, what handles routed tokens with those that come to its experts in that layer.
// That times go with the work is exact for what is bound by memory or links and for GEMMs that fill
// the device; gradients, gathers of weights and the optimizer do not depend on either.
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
  std::vector<std::vector<double>> rows;  // unlike ones; none: everything is as the plan says
  std::vector<std::int32_t> of_rank;      // its row
  std::string unlike_because;             // empty: all ranks have one row
  double tokens = 1;                      // of the batch, over what the plan says
  double flop = 1;
  bool has_sequences = false;
  bool has_routing = false;
  int microbatches = 0;  // of a replica: the plan's, or fewer where sequences are dealt dynamically
  int layers = 0;

  // Of an operation in its rank's row; −1: it is as the plan says.
  std::int32_t of(const Program& program, const IssuedOperation& issued) const;
};

// Fails on routing where every expert computes its capacity. Requires: check() of the conditions.
Expected<StepLoads> step_loads(const PreparedJob& job, const Plan& plan, const RankLayout& layout,
                               const StepConditions& conditions);

}  // namespace trainyard
