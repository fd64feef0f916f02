// How tokens spread over the experts of a layer, and how much more than the mean that gives to each
// rank of an expert-parallel group.
//
// By a skew z the k-th most popular expert of a layer gets a share in proportion to k^−z (Zipf);
// which expert that is, is drawn for every layer. A token goes to an expert once at most, so no
// share is over 1 / experts_per_token.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard {

struct ExpertRouting {
  double skew = 0;
  // Of each expert, in any unit; the same in every layer. Empty: by skew.
  std::vector<double> shares;
};

// Of the experts of a layer; they sum to 1. Requires: 0 < experts_per_token <= experts.
std::vector<double> expert_shares(const ExpertRouting& routing, int experts, int experts_per_token,
                                  std::uint64_t seed, int layer);

// Of each of `ranks` ranks that hold experts / ranks experts each, in order: routed tokens over the
// mean. Requires: ranks divides the number of shares.
std::vector<double> expert_loads(const std::vector<double>& shares, int ranks);

}  // namespace trainyard
