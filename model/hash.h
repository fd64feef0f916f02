// A hash of whole numbers. It makes pseudo-random choices that are the same on every machine, for
// any number of threads and under every sharding: each choice is a function of what it is made for.
#pragma once

#include <cstdint>

namespace trainyard {

// SplitMix64 (Steele, Lea & Flood 2014): all bits of the result depend on all of x's.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace trainyard
