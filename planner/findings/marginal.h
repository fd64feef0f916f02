// What 1 % more of each resource gains: the search is repeated on a job that has it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "planner/findings/explain.h"
#include "planner/findings/hardware.h"
#include "planner/planner.h"

namespace trainyard {

struct MarginalValue {
  std::string_view resource;  // "FLOP/s"
  double gained = 0;          // fraction of the objective's value that is saved
  bool same_plan = true;      // whether the best plan stays the best
};

inline constexpr double kMarginalShare = 0.01;  // how much more of a resource is tried

// The resources that a plan with this offload can gain by, in the order below.
std::span<const HardwareChange> resources_of(const Offload& offload);

// The values of FLOP/s, memory capacity, memory bandwidth, network bandwidth and bandwidth inside
// the node, in this order; where the winner has something on the hosts also of the bandwidth of the
// link to them and of their memory, and of their drives where something lies there. Never below
// zero. One search serves all resources: no plan is worse for more of a resource (but for some
// hundredths of a percent where a faster network slows the compute beside it more), so that a plan
// that beats `winner` with more of one resource is found by a search with more of all.
std::vector<MarginalValue> marginal_values(const PreparedJob& job, const SearchOptions& options,
                                           const Candidate& winner, const JobEvaluator& evaluate);

}  // namespace trainyard
