// When no plan fits: what to change, each change with the best plan that it allows. When one does:
// whether fewer nodes are faster.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/findings/explain.h"
#include "planner/planner.h"

namespace trainyard {

struct WayOut {
  std::string change;   // "16 nodes instead of 8"
  Candidate candidate;  // the best plan that fits after the change
  double device_seconds_per_token = 0;
};

// A search that may choose more than the one that found nothing.
struct Freedom {
  std::string change;
  SearchOptions options;
};
// A freedom for every key of which the search was not allowed all values, and for what may lie on
// the hosts; narrower ones first.
std::vector<Freedom> freedoms(const Job& job, const SearchOptions& options);

// Whether the fabric between nodes is known, and is legal for this number of nodes.
bool connects(const Cluster& cluster);

inline constexpr std::size_t kWays = 3;     // that are told
inline constexpr int kMostTimesNodes = 64;  // more nodes are tried up to this factor

// The cheapest ways, where each plan stands once, under the first way that leads to it. `same`:
// whether two ways lead to the same plan.
template <typename Way, typename Same>
std::vector<Way> cheapest_distinct(std::vector<Way> ways, Same same) {
  std::vector<Way> kept;
  for (Way& way : ways) {
    const bool known =
        std::ranges::any_of(kept, [&](const Way& other) { return same(other, way); });
    if (!known) kept.push_back(std::move(way));
  }
  std::ranges::stable_sort(kept, {}, &Way::device_seconds_per_token);
  if (kept.size() > kWays) kept.resize(kWays);
  return kept;
}

// The three ways out with the fewest device-seconds a token: more nodes (doubled until a plan
// fits), states or activations in host memory, half of the global batch, and what the search was
// not allowed (degrees, layers of stages, ZeRO, recomputation, micro-batch, …). Each is a search of
// its own, and a plan that several ways lead to stands once, under the narrowest.
std::vector<WayOut> ways_out(const Job& job, const SearchOptions& options,
                             const JobEvaluator& evaluate);

// For a job whose batch or layers do not divide well by its nodes: the fastest plan on fewer nodes,
// the others idle, where it is faster than `winner` by at least 1 %. Only for the objective
// step-time. Tries the largest smaller multiple of each power of two, down to half of the nodes,
// that leaves tensor and pipeline parallelism no larger prime factor than all nodes do. Nothing
// where all nodes leave them a power of two.
std::optional<WayOut> fewer_nodes(const Job& job, const SearchOptions& options,
                                  const Candidate& winner, const JobEvaluator& evaluate);

}  // namespace trainyard
