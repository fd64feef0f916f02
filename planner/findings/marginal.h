// What a little more of each resource is worth: the search again on a job that has it.
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
  double gained = 0;          // share of the objective
  bool same_plan = true;      // the best plan stays the best
};

inline constexpr double kMarginalShare = 0.01;  // more of it

// Those that a plan with this on the hosts can gain by, in the order below.
std::span<const HardwareChange> resources_of(const Offload& offload);

// FLOP/s, memory capacity and bandwidth, network bandwidth, the bandwidth inside the node, in this
// order, and where the winner has something on the hosts the bandwidth of the link to them and of
// their memory, and of their drives where something lies there; never below zero.
// One search for all: no plan is worse for more of a resource (but for some hundredths of a percent
// where a faster network or link takes more of compute beside it), so what beats `winner` with more
// of one is as good as it with more of all.
std::vector<MarginalValue> marginal_values(const PreparedJob& job, const SearchOptions& options,
                                           const Candidate& winner, const JobEvaluator& evaluate);

}  // namespace trainyard
