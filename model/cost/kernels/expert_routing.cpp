#include "model/cost/kernels/expert_routing.h"

#include <algorithm>
#include <cmath>

namespace trainyard {
namespace {

// The density x^(−α) on [least, most].
struct PowerLaw {
  double exponent, least, most;

  // ∫ x^q dx over [low, most].
  double integral(double q, double low) const {
    if (std::abs(q + 1) < 1e-9) return std::log(most / low);
    return (std::pow(most, q + 1) - std::pow(low, q + 1)) / (q + 1);
  }
  double moment(int order) const {
    return integral(order - exponent, least) / integral(-exponent, least);
  }
  double above(double x) const {
    return integral(-exponent, std::clamp(x, least, most)) / integral(-exponent, least);
  }
};

double copies(const Routing& routing) { return routing.tokens * routing.experts_per_token; }

PowerLaw popularity(const Routing& routing) {
  if (copies(routing) > routing.experts) {
    return {routing.exponent, 1, std::max(2.0, 0.8 * routing.tokens)};
  }
  return {routing.exponent, 0.01, 2};
}

// Wichura 1988, AS 241 (seven digits), for p of one half or more.
double normal_quantile(double p) {
  const double q = p - 0.5;
  if (q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
  }
  const double r = std::sqrt(-std::log(1 - p)) - 1.6;
  return (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
         ((0.12021132975 * r + 0.73700164250) * r + 1.0);
}

}  // namespace

double busiest_over_mean(const Routing& routing, int ranks) {
  if (ranks <= 1 || routing.exponent == 0) return 1;
  const PowerLaw law = popularity(routing);
  const double mean = law.moment(1);
  const double spread = law.moment(2) / (mean * mean) - 1;  // squared, relative, of an expert
  const double shape = routing.experts / (spread * ranks);
  const double rank_spread = (ranks - 1) / (shape * ranks + 1);  // of a rank's share of the total
  const double z = normal_quantile(std::pow(0.5264, 1.0 / ranks));
  const double root = 1 - rank_spread / 9 + z * std::sqrt(rank_spread) / 3;
  return std::clamp(root * root * root, 1.0, static_cast<double>(ranks));
}

double active_share(const Routing& routing) {
  if (routing.exponent == 0) return 1;
  const PowerLaw law = popularity(routing);
  const double tokens_an_expert = copies(routing) / routing.experts;
  return law.above(0.5 * law.moment(1) / tokens_an_expert);  // rounded to a token or more
}

}  // namespace trainyard
