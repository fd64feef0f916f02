#include "planner/bound/traffic_floor.h"

#include <algorithm>
#include <limits>

#include "model/cost/messages/traffic.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

// The least of both, part by part. What experts may spare is subtracted from a floor, so that there
// the larger of both counts.
ParameterTraffic least(const ParameterTraffic& a, const ParameterTraffic& b) {
  return {std::min(a.gather, b.gather), std::min(a.reduce, b.reduce),
          std::max(a.gather_of_experts, b.gather_of_experts),
          std::max(a.reduce_of_experts, b.reduce_of_experts)};
}

// Lower bound of a micro-batch's passes with the traffic beside them. In each chunk the first
// layer's experts may be gathered, and the last one's reduced, beside the rest of their own layer:
// that traffic is left out.
Seconds beside_passes(const ParameterTraffic& traffic, int zero_stage, int chunks,
                      const PassTimes& passes) {
  if (zero_stage == 2) return std::max(passes.total(), traffic.reduce);
  const Seconds gather = traffic.gather - chunks * traffic.gather_of_experts;
  const Seconds both = traffic.gather + traffic.reduce - chunks * traffic.reduce_of_experts;
  return std::max(passes.forward, gather) + std::max(passes.backward(), both);
}

}  // namespace

void TrafficFloors::start(const std::vector<Placement>& all,
                          const std::vector<std::size_t>& placements) {
  placements_.clear();
  for (const std::size_t placement : placements) placements_.push_back(&all[placement]);
  known_.clear();
}

const ParameterTraffic& TrafficFloors::least_traffic(const Plan& plan,
                                                     const StageParameters& first) {
  for (const Known& known : known_) {
    const bool same =
        known.zero_stage == plan.held_zero_stage() && known.sharding_group == plan.sharding_group;
    if (same && known.first == first) return known.least;
  }
  constexpr Seconds kMost(std::numeric_limits<double>::infinity());
  Known found{plan.held_zero_stage(), plan.sharding_group, first, {kMost, kMost, {}, {}}};
  Plan placed = plan;
  for (const Placement* placement : placements_) {
    placed.rank_order = placement->rank_order;
    placed.collective = placement->collective;
    PlanLinks links = estimator_.links(placed);
    if (!stages_lie_alike(job_, placed)) links = stage_links(job_, placed, links, 0);
    found.least = least(found.least, parameter_traffic(job_, placed, links, first));
  }
  known_.push_back(found);
  return known_.back().least;
}

Seconds TrafficFloors::step(const Plan& plan, const StageParameters& first,
                            const PassTimes& passes) {
  if (plan.held_zero_stage() < 2 || plan.schedule->route == Route::both_ways) return Seconds(0);
  const ParameterTraffic& traffic = least_traffic(plan, first);
  if (plan.overlap.data_parallel) {
    const int chunks = pipeline_shape(plan).chunks;
    return plan.microbatches * beside_passes(traffic, plan.held_zero_stage(), chunks, passes);
  }
  const double gathers = plan.held_zero_stage() >= 3 ? 2 : 0;
  return plan.microbatches * (passes.total() + gathers * traffic.gather + traffic.reduce);
}

}  // namespace trainyard
