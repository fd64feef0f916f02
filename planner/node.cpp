#include "planner/node.h"

#include <algorithm>

#include "model/plan/process_groups.h"
#include "model/schedule/schedule.h"

namespace trainyard {

void set_degrees(const Enumeration& space, const Degrees& degrees, PlanRequest& request) {
  request.tensor_parallel = degrees.tensor;
  request.sequence_parallel = degrees.sequence_parallel;
  request.context_parallel = degrees.context;
  request.context_parallel_algorithm = degrees.algorithm;
  request.pipeline_parallel = degrees.pipeline;
  request.data_parallel = degrees.data;
  request.expert_parallel = degrees.expert;
  request.expert_tensor_parallel = degrees.expert_tensor;
  const Placement& placement = space.placements[degrees.placement];
  request.rank_order = placement.rank_order;
  request.collective = placement.collective;
}

void set_shape(const Shape& shape, PlanRequest& request) {
  request.micro_batch = shape.micro_batch;
  request.virtual_stages = shape.virtual_stages;
  request.schedule = shape.schedule->name;
}

void set_sharding(const Sharding& sharding, PlanRequest& request) {
  request.zero_stage = sharding.zero_stage;
  request.sharding_group.reset();
  if (sharding.group > 0) request.sharding_group = sharding.group;
}

void NodeBounds::start() { priced_.clear(); }

std::optional<NodeBounds::Found> NodeBounds::look(const Degrees& degrees, const ShapeRange& range,
                                                  const PlanRequest& base) {
  PlanRequest request = base;
  set_degrees(space_, degrees, request);
  request.zero_stage = 0;
  request.sharding_group.reset();
  const Job& job = job_.job;
  for (std::size_t i = range.first; i < range.last; ++i) {
    set_shape(space_.shapes[degrees.shapes][i], request);
    if (auto plan = plan_if_legal(request, job.model, job.cluster, job.training)) {
      const PassSums sums = sums_of(degrees, *plan);
      return Found{*std::move(plan), sums};
    }
  }
  return std::nullopt;
}

const PassSums& NodeBounds::sums_of(const Degrees& degrees, const Plan& plan) {
  if (groups_of_ != &degrees) {
    const ProcessGroups all = process_groups(plan);
    groups_ = {all.tensor, all.context, all.expert, all.expert_tensor};
    groups_of_ = &degrees;
  }
  for (const Priced& priced : priced_) {
    if (priced.micro_batch == plan.micro_batch && priced.groups == groups_) return priced.sums;
  }
  priced_.push_back({plan.micro_batch, groups_,
                     pass_sums(job_, stage_costs(job_, plan, plan_links(job_, plan)))});
  return priced_.back().sums;
}

PlanBound NodeBounds::bound(const Degrees& degrees, Found found) const {
  PlanBound least{Seconds(1e300), Seconds(1e300), Bytes(1e300)};
  const std::vector<Shape>& shapes = space_.shapes[degrees.shapes];
  const auto paired = std::find_if(shapes.begin(), shapes.end(), [](const Shape& shape) {
    return shape.schedule->route == Route::both_ways;
  });
  if (paired != shapes.end()) found.plan.schedule = paired->schedule;
  for (const Sharding& sharding : space_.shardings_of(degrees)) {
    found.plan.zero_stage = sharding.zero_stage;
    found.plan.sharding_group =
        sharding.group > 0 ? sharding.group : degrees.data * degrees.context;
    for (const Recompute& recompute : space_.recomputes) {
      found.plan.recompute = recompute;
      const PlanBound one = plan_bound(job_, shares_, found.sums, found.plan);
      least.step = std::min(least.step, one.step);
      least.busy = std::min(least.busy, one.busy);
      least.memory = std::min(least.memory, one.memory);
    }
  }
  return least;
}

}  // namespace trainyard
