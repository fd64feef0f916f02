// Optimizers as records of state and of traffic per parameter. Mixed-precision Adam reads gradient
// 4, master 4, two moments 4 + 4 and writes master 4, moments 4 + 4 and the 16-bit weight 2: 30
// bytes (handbook §4); the weight and master terms come from the precision recipe.
#pragma once

#include <span>
#include <string_view>

namespace trainyard {

struct Optimizer {
  std::string_view name;
  double moment_bytes = 8;  // fp32 moments held, a parameter (Adam 8, SGD with momentum 4)
};

// adam, adamw, sgd (momentum).
std::span<const Optimizer> optimizers();
const Optimizer* find_optimizer(std::string_view name);  // nullptr: no such optimizer

}  // namespace trainyard
