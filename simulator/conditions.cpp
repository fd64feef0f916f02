#include "simulator/conditions.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "simulator/engine/random.h"

namespace trainyard {

Expected<void> check(const Conditions& conditions, std::int32_t ranks) {
  for (const SpeedChange& change : conditions.speeds) {
    if (change.rank < 0 || change.rank >= ranks) {
      return failure("speeds",
                     fmt::format("found rank {}, allowed 0 to {}", change.rank, ranks - 1));
    }
    if (!(change.speed > 0)) {
      return failure("speeds", fmt::format("found {} for rank {}, allowed more than 0",
                                           change.speed, change.rank));
    }
  }
  if (!(conditions.jitter >= 0)) {
    return failure("jitter", fmt::format("found {}, allowed 0 or more", conditions.jitter));
  }
  if (!(conditions.overlap_slowdown >= 0 && conditions.overlap_slowdown <= 1)) {
    return failure("overlap_slowdown",
                   fmt::format("found {}, allowed 0 to 1", conditions.overlap_slowdown));
  }
  return {};
}

double jitter_factor(const Conditions& conditions, std::int32_t rank, std::int32_t task) {
  if (conditions.jitter == 0) return 1;
  const auto place = static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(task);
  const std::uint64_t first = mixed(mixed(conditions.seed) ^ place);
  const double normal = std::sqrt(-2 * std::log(uniform_positive(first))) *
                        std::cos(2 * std::numbers::pi * uniform_positive(mixed(first)));
  const double variance = std::log1p(conditions.jitter * conditions.jitter);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace trainyard
