#include "simulator/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulator/engine/random.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kRoutingStream = 0xe4be5700;

// Zipf weights, shuffled differently for every seed and layer (Fisher & Yates).
std::vector<double> skewed(double skew, int experts, std::uint64_t seed, int layer) {
  std::vector<double> weights;
  weights.reserve(static_cast<std::size_t>(experts));
  for (int k = 1; k <= experts; ++k) weights.push_back(std::pow(k, -skew));
  RandomStream random(seed, kRoutingStream + static_cast<std::uint64_t>(layer));
  for (std::size_t left = weights.size(); left > 1; --left) {
    const auto other = static_cast<std::size_t>(random.uniform() * static_cast<double>(left));
    std::swap(weights[left - 1], weights[std::min(other, left - 1)]);
  }
  return weights;
}

void normalise(std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
}

// Caps every share at `most` and spreads the excess over the other experts in proportion; each turn
// fills at least one expert.
void cap(std::vector<double>& shares, double most) {
  const auto is_full = [most](double share) { return share >= most; };
  for (std::size_t turn = 0; turn < shares.size(); ++turn) {
    if (*std::max_element(shares.begin(), shares.end()) <= most) return;
    const auto full = std::count_if(shares.begin(), shares.end(), is_full);
    const double rest = std::accumulate(
        shares.begin(), shares.end(), 0.0,
        [&](double sum, double share) { return is_full(share) ? sum : sum + share; });
    const double stretch = (1 - most * static_cast<double>(full)) / rest;
    for (double& share : shares) share = is_full(share) ? most : share * stretch;
  }
}

}  // namespace

std::vector<double> expert_shares(const ExpertRouting& routing, int experts, int experts_per_token,
                                  std::uint64_t seed, int layer) {
  std::vector<double> shares =
      routing.shares.empty() ? skewed(routing.skew, experts, seed, layer) : routing.shares;
  normalise(shares);
  cap(shares, 1.0 / experts_per_token);
  return shares;
}

std::vector<double> expert_loads(const std::vector<double>& shares, int ranks) {
  const std::size_t each = shares.size() / static_cast<std::size_t>(ranks);
  std::vector<double> loads(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < shares.size(); ++i) loads[i / each] += shares[i] * ranks;
  return loads;
}

}  // namespace trainyard
