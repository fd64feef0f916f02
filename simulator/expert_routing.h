// How routed tokens spread over the experts of a layer, and the load of each rank of an
// expert-parallel group that results.
//
// With a skew z, the k-th most popular expert of a layer gets a share proportional to k^−z (Zipf);
// which expert is the k-th most popular is drawn anew for each layer. A token goes to an expert at
// most once, so every share is capped at 1 / experts_per_token, and the excess goes to the other
// experts in proportion.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard {

struct ExpertRouting {
  double skew = 0;
  // Relative popularity of each expert, in any unit; the same in every layer. Empty: from the skew.
  std::vector<double> shares;
};

// The share of a layer's routed tokens that each of its experts gets; the shares sum to 1.
// Requires: 0 < experts_per_token <= experts.
std::vector<double> expert_shares(const ExpertRouting& routing, int experts, int experts_per_token,
                                  std::uint64_t seed, int layer);

// The load of each of `ranks` ranks, its routed tokens over the mean: ranks · Σ shares of its
// experts. Ranks hold experts in order, equally many each: shares 0.4, 0.2, 0.2, 0.2 on 2 ranks
// give loads 1.2 and 0.8. Requires: ranks divides the number of shares.
std::vector<double> expert_loads(const std::vector<double>& shares, int ranks);

}  // namespace trainyard
