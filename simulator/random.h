// Random numbers that are the same on every machine and for any number of threads: each is a hash
// of its place. SplitMix64 (Steele, Lea & Flood 2014).
#pragma once

#include <cmath>
#include <cstdint>

namespace trainyard {

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// In (0, 1].
inline double uniform(std::uint64_t x) { return (static_cast<double>(x >> 11) + 1) * 0x1p-53; }

// A sequence of its own for every seed and stream.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : state_(mixed(mixed(seed) ^ stream)) {}

  double uniform() { return trainyard::uniform(mixed(state_ += 0x9e3779b97f4a7c15)); }
  double exponential(double mean) { return -mean * std::log(uniform()); }

 private:
  std::uint64_t state_;
};

}  // namespace trainyard
