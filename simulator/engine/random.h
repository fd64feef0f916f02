// Reproducible sequences of random numbers, and distributions drawn from them.
#pragma once

#include <cmath>
#include <cstdint>

#include "model/hash.h"

namespace trainyard {

// Maps 64 random bits to (0, 1]: never 0, so that its logarithm is finite.
constexpr double uniform_positive(std::uint64_t x) {
  return (static_cast<double>(x >> 11) + 1) * 0x1p-53;
}

// Every pair of seed and stream has a sequence of its own.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : state_(mixed(mixed(seed) ^ stream)) {}

  double uniform() { return uniform_positive(mixed(state_ += 0x9e3779b97f4a7c15)); }
  double exponential(double mean) { return -mean * std::log(uniform()); }
  double normal() {  // Box & Muller 1958
    constexpr double kTurn = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(kTurn * uniform());
  }
  // Gamma-distributed with scale 1 (Marsaglia & Tsang 2000). Requires: shape >= 1.
  double gamma(double shape) {
    const double d = shape - 1.0 / 3;
    while (true) {
      const double x = normal();
      const double root = 1 + x / (3 * std::sqrt(d));
      const double v = root * root * root;
      if (v > 0 && std::log(uniform()) < x * x / 2 + d * (1 - v + std::log(v))) return d * v;
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace trainyard
