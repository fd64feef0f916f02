#include "planner/findings/explain.h"

#include <algorithm>
#include <cmath>

namespace trainyard {
std::optional<Infeasible> infeasibility(const Estimate& estimate, const Cluster& cluster) {
  if (estimate.feasible) {
    return std::nullopt;
  }
  if (estimate.peak_memory <= cluster.usable_memory()) {
    const auto most = std::ranges::max_element(
        estimate.stages, {}, [](const StageEstimate& stage) { return stage.memory.on_host; });
    return Infeasible{true, static_cast<int>(most - estimate.stages.begin()), estimate.host_memory,
                      *cluster.host_memory};
  }
  return Infeasible{false, estimate.fullest_stage, estimate.peak_memory / cluster.memory_share,
                    cluster.device.memory};
}

std::vector<PartDifference> part_differences(const Breakdown& winner, const Breakdown& other,
                                             Seconds step) {
  // Below a ten-thousandth of the step a difference explains nothing.
  constexpr double kNegligible = 1e-4;
  std::vector<PartDifference> differences;
  for (const BreakdownPart& part : breakdown_parts()) {
    const PartDifference difference{&part, winner.*part.time, other.*part.time};
    if (std::abs(difference.lost() / step) > kNegligible) differences.push_back(difference);
  }
  std::stable_sort(
      differences.begin(), differences.end(),
      [](const PartDifference& a, const PartDifference& b) { return a.lost() > b.lost(); });
  return differences;
}

Comparison compare(const Candidate& winner, const Candidate& other, const Cluster& cluster) {
  return {.memory = infeasibility(other.estimate, cluster),
          .lost = other.estimate.step_time - winner.estimate.step_time,
          .differences = part_differences(winner.estimate.breakdown, other.estimate.breakdown,
                                          winner.estimate.step_time)};
}

Limits limits(const Breakdown& breakdown) {
  Limits limits;
  const auto larger = [&](const BreakdownPart& part, const BreakdownPart* than) {
    return breakdown.*part.time > (than == nullptr ? Seconds(0) : breakdown.*than->time);
  };
  for (const BreakdownPart& part : breakdown_parts()) {
    if (larger(part, limits.largest)) {
      limits.largest = &part;
    }
    if (!is_useful(part) && larger(part, limits.largest_overhead)) {
      limits.largest_overhead = &part;
    }
  }
  return limits;
}

}  // namespace trainyard
