#include "model/workload/optimizer.h"

#include <algorithm>
#include <array>

namespace trainyard {
namespace {

// Adam: Kingma & Ba 2015; AdamW (Loshchilov & Hutter 2019) moves the decay and keeps the same
// state. SGD keeps one moment, the momentum.
constexpr std::array<Optimizer, 3> kOptimizers = {{
    {.name = "adam", .moment_bytes = 8},
    {.name = "adamw", .moment_bytes = 8},
    {.name = "sgd", .moment_bytes = 4},
}};

}  // namespace

std::span<const Optimizer> optimizers() { return kOptimizers; }

const Optimizer* find_optimizer(std::string_view name) {
  const auto* found = std::ranges::find(kOptimizers, name, &Optimizer::name);
  return found == kOptimizers.end() ? nullptr : found;
}

}  // namespace trainyard
