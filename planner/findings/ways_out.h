// When no plan fits: what to change, each with the best plan that it allows. When one does: whether
// fewer nodes are faster.
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
  Candidate candidate;  // the best plan that then fits
  double device_seconds_per_token = 0;
};

// What a search that is bounded less may choose.
struct Freedom {
  std::string change;
  SearchOptions options;
};
// One for every key that the search was not allowed all of, and for what may lie on the hosts;
// narrower ones first.
std::vector<Freedom> freedoms(const Job& job, const SearchOptions& options);

// Whether the fabric between nodes is known and stays the same for as many.
bool connects(const Cluster& cluster);

inline constexpr std::size_t kWays = 3;
inline constexpr int kMostTimesNodes = 64;

// Each plan once, under the first way that leads to it; of these the cheapest. `same`: whether two
// ways lead to the same plan.
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

// The cheapest three by the time of all devices for a token: more nodes (doubled until a plan
// fits), states or activations in host memory, half of the global batch, and what the search was
// not allowed (degrees, layers of stages, ZeRO, recomputation, micro-batch, …). Each is a search of
// its own, and each plan stands once: under the narrowest way that leads to it.
std::vector<WayOut> ways_out(const Job& job, const SearchOptions& options,
                             const JobEvaluator& evaluate);

// Of a job whose batch or layers its nodes do not divide well: the fastest plan on fewer of them,
// where it is faster than `winner` by a hundredth at least, the other nodes idle. Only for the
// objective step-time: by others fewer nodes are another question. Those counts are looked at that
// are multiples of a power of two, down to half of the nodes, and leave no larger prime factor to
// tensor and pipeline parallelism than all nodes do; none where all leave a power of two.
std::optional<WayOut> fewer_nodes(const Job& job, const SearchOptions& options,
                                  const Candidate& winner, const JobEvaluator& evaluate);

}  // namespace trainyard
