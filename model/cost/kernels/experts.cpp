#include "model/cost/kernels/experts.h"

#include <algorithm>
#include <cmath>

namespace trainyard {
namespace {

constexpr double kExpertElement = 2;  // bytes: the blocks were measured in 16 bits

struct RankLoad {
  double rows;     // token copies
  double experts;  // with at least one row
};

RankLoad busiest_rank(const ExpertRates& rates, const ExpertBlock& block) {
  const Routing& routing = block.routing;
  const double local = static_cast<double>(routing.experts) / block.ranks;
  const double mean = routing.tokens * routing.experts_per_token / block.ranks;
  const double excess = rates.skew_gain * (busiest_over_mean(routing, block.ranks) - 1);
  const double most =
      routing.tokens * std::min(static_cast<double>(routing.experts_per_token), local);
  const double rows = std::min(mean * (1 + excess), most);
  const double active = std::min(local * active_share(routing), rows);
  return {rows, std::max(active, std::min(1.0, rows))};
}

double rest(const ExpertRates& rates, const ExpertBlock& block) {
  return rates.residual.empty() ? 0 : residual_at(rates.residual, expert_coordinates(block));
}

}  // namespace

Seconds grouped_gemm_time(const Device& device, Dtype dtype, const GemmShape& g) {
  if (g.m <= 0) return Seconds(0);
  const ExpertRates& rates = device.rates.experts;
  const double rows = (g.m + rates.padding_rows) * g.groups;
  const double rate = rates.per_multiprocessor.value() * device.rate_over_measured(dtype) *
                      device.multiprocessors * device.rates.sustained_clock;
  const double compute = 2 * rows * (g.k + rates.fill) * g.n / rate;
  const double weights = bytes_per_element(dtype) * g.groups * g.k * g.n /
                         (rates.memory_share * device.memory_bandwidth.value());
  // The block's overhead covers two GEMMs, activation and permutation.
  return rates.overhead / 4 + Seconds(std::hypot(compute, weights));
}

std::array<double, 4> expert_coordinates(const ExpertBlock& block) {
  constexpr double kFirst = 1.01;
  constexpr double kSecond = 1.2;
  const Routing& routing = block.routing;
  const double exponent = routing.exponent;
  const double kind =
      exponent <= kFirst ? exponent / kFirst : 1 + (exponent - kFirst) / (kSecond - kFirst);
  return {std::log2(routing.tokens * routing.experts_per_token / routing.experts),
          std::log2(static_cast<double>(routing.experts) / block.ranks), std::log2(block.ffn),
          kind};
}

Seconds expert_block_time(const Device& device, const ExpertBlock& block) {
  const ExpertRates& rates = device.rates.experts;
  const RankLoad load = busiest_rank(rates, block);
  const double up = block.gated ? 2 : 1;
  const double padded = load.rows + rates.padding_rows * load.experts;
  const double multiplied =
      up * (block.hidden + rates.fill) * block.ffn + (block.ffn + rates.fill) * block.hidden;
  const double compute =
      2 * padded * multiplied / (rates.per_multiprocessor.value() * device.multiprocessors);
  const double bandwidth = device.memory_bandwidth.value();
  const bool lone = block.routing.experts == block.ranks;
  const double share = rates.memory_share * (lone ? rates.lone_share : 1);
  const double weights =
      kExpertElement * (up + 1) * load.experts * block.hidden * block.ffn / (share * bandwidth);
  const double elements =
      load.rows * (rates.hidden_passes * block.hidden + rates.ffn_passes * up * block.ffn) +
      rates.group_passes * block.routing.tokens * block.hidden;
  const Seconds time = rates.overhead + Seconds(std::hypot(compute, weights) +
                                                kExpertElement * elements / bandwidth);
  return time * std::exp(rest(rates, block));
}

}  // namespace trainyard
