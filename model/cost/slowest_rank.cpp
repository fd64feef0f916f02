#include "model/cost/slowest_rank.h"

#include <cmath>

namespace trainyard {
namespace {

// Expected maximum of n standard normal variables (Blom 1958): the quantile at (n − 0.375)/(n +
// 0.25), by the rational approximation of Abramowitz & Stegun 26.2.23.
double expected_maximum(double n) {
  if (n <= 1) return 0;
  const double tail = 0.625 / (n + 0.25);
  const double u = std::sqrt(-2 * std::log(tail));
  return u - (2.515517 + u * (0.802853 + u * 0.010328)) /
                 (1 + u * (1.432788 + u * (0.189269 + u * 0.001308)));
}

}  // namespace

double slowest_rank_factor(const Stack& stack, const Plan& plan) {
  return 1 + stack.rank_spread * expected_maximum(plan.devices());
}

Seconds lost_to_slowest_rank(const Stack& stack, const Plan& plan, const Breakdown& parts) {
  const Seconds paced = parts.compute + parts.embedding_head + parts.recompute + parts.bubble;
  return paced * (slowest_rank_factor(stack, plan) - 1);
}

}  // namespace trainyard
