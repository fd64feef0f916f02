// When no plan fits: what to change, each with the best plan that it allows.
#pragma once

#include <string>
#include <vector>

#include "planner/explain.h"
#include "planner/planner.h"

namespace trainyard {

struct WayOut {
  std::string change;   // "16 nodes instead of 8"
  Candidate candidate;  // the best plan that then fits
  double device_seconds_per_token = 0;
};

// The cheapest three by the time of all devices for a token: more nodes (doubled until a plan
// fits), states or activations in host memory, half of the global batch, and what the search was
// not allowed (degrees, layers of stages, ZeRO, recomputation, micro-batch, …). Each is a search of
// its own, and each plan stands once: under the narrowest way that leads to it.
std::vector<WayOut> ways_out(const Job& job, const SearchOptions& options,
                             const JobEvaluator& evaluate);

}  // namespace trainyard
