#include "planner/search/node.h"

#include <algorithm>

#include "model/plan/process_groups.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

// The recomputation with the shortest passes: a node's bound depends on it in nothing else.
Recompute least_recompute(const Enumeration& space, const Degrees& degrees, const PassSums& sums) {
  std::optional<Recompute> least;
  for (const RecomputeChoice& choice : space.recomputes) {
    if (!choice.is_for(degrees.pipeline)) continue;
    if (!least || sums.total(choice.every_stage) < sums.total(*least)) least = choice.every_stage;
  }
  return least.value_or(Recompute{});
}

}  // namespace

void set_degrees(const Enumeration& space, const Degrees& degrees, PlanRequest& request) {
  request.tensor_parallel = degrees.tensor;
  request.sequence_parallel = degrees.sequence_parallel;
  request.context_parallel = degrees.context;
  request.context_parallel_algorithm = degrees.algorithm;
  request.pipeline_parallel = degrees.pipeline;
  request.data_parallel = degrees.data;
  request.expert_parallel = degrees.expert;
  request.expert_tensor_parallel = degrees.expert_tensor;
  set_placement(space.placements[degrees.placement], request);
}

void set_placement(const Placement& placement, PlanRequest& request) {
  request.rank_order = placement.rank_order;
  request.collective = placement.collective;
}

void set_shape(const StepShape& shape, PlanRequest& request) {
  request.micro_batch = shape.micro_batch;
  request.virtual_stages = shape.virtual_stages;
  request.schedule = shape.schedule->name;
}

void set_recompute(const RecomputeChoice& choice, PlanRequest& request) {
  request.recompute = choice.every_stage;
  request.recompute_per_stage = choice.per_stage;
}

void set_recompute(const RecomputeChoice& choice, Plan& plan) {
  plan.recompute = choice.every_stage;
  plan.recompute_per_stage = choice.per_stage;
}

void set_sharding(const Sharding& sharding, PlanRequest& request) {
  request.zero_stage = sharding.zero_stage;
  request.sharding_group.reset();
  if (sharding.group > 0) request.sharding_group = sharding.group;
  request.offload = sharding.offload;
}

void set_sharding(const Sharding& sharding, const Degrees& degrees, Plan& plan) {
  plan.zero_stage = sharding.zero_stage;
  plan.sharding_group = sharding.group > 0 ? sharding.group : degrees.data * degrees.context;
  plan.offload = sharding.offload;
}

LayerGroups layer_groups(const Plan& plan) {
  const ProcessGroups all = process_groups(plan);
  return {all.tensor, all.context, all.expert, all.expert_tensor};
}

std::optional<Plan> plan_of_node(const PreparedJob& job, const Enumeration& space,
                                 const Degrees& degrees, const ShapeRange& range,
                                 const PlanRequest& base) {
  PlanRequest request = base;
  set_degrees(space, degrees, request);
  request.zero_stage = 0;
  request.sharding_group.reset();
  const Job& j = job.job;
  for (std::size_t i = range.first; i < range.last; ++i) {
    set_shape(space.shapes[degrees.shapes][i], request);
    if (auto plan = plan_if_legal(request, j.model, j.cluster, j.training)) return plan;
  }
  return std::nullopt;
}

const Schedule* paired_schedule(const Enumeration& space, const Degrees& degrees) {
  const std::vector<StepShape>& shapes = space.shapes[degrees.shapes];
  const auto paired = std::find_if(shapes.begin(), shapes.end(), [](const StepShape& shape) {
    return shape.schedule->route == Route::both_ways;
  });
  return paired == shapes.end() ? nullptr : paired->schedule;
}

void NodeFloors::start(const Degrees& degrees) {
  if (degrees_ != nullptr && !same_attention(*degrees_, degrees)) attention_.clear();
  if (degrees_ != nullptr && !same_layers(*degrees_, degrees)) layers_.clear();
  degrees_ = &degrees;
  plan_.reset();
  for (const ShapeRange& range : space_.ranges[degrees.shapes]) {
    plan_ = plan_of_node(job_, space_, degrees, range, base_);
    if (!plan_) continue;
    groups_ = layer_groups(*plan_);
    break;
  }
  paired_ = paired_schedule(space_, degrees) != nullptr;
}

// Zero where no plan of the degrees is legal: NodeBounds::look finds that out.
Seconds NodeFloors::floor(const ShapeRange& range, bool experts) {
  if (!plan_) return Seconds(0);
  plan_->microbatches = plan_->microbatches * plan_->micro_batch / range.micro_batch;
  plan_->micro_batch = range.micro_batch;
  return step_floor(job_, *plan_, priced(experts), paired_);
}

const ExchangeFloor& NodeFloors::priced(bool experts) {
  LayerGroups groups = groups_;
  if (!experts) groups[2] = groups[3] = GroupShape{};
  std::vector<Priced>& known = experts ? layers_ : attention_;
  for (const Priced& one : known) {
    if (one.micro_batch == plan_->micro_batch && one.groups == groups) return one.floor;
  }
  known.push_back({plan_->micro_batch, groups,
                   exchange_floor(job_, *plan_, estimator_.links(*plan_), experts)});
  return known.back().floor;
}

void NodeBounds::start() { priced_.clear(); }

std::optional<NodeBounds::Found> NodeBounds::look(const Degrees& degrees, const ShapeRange& range,
                                                  const PlanRequest& base) {
  auto plan = plan_of_node(job_, space_, degrees, range, base);
  if (!plan) return std::nullopt;
  const PassSums sums = sums_of(degrees, *plan);
  return Found{*std::move(plan), sums};
}

const PassSums& NodeBounds::sums_of(const Degrees& degrees, const Plan& plan) {
  if (groups_of_ != &degrees) {
    groups_ = layer_groups(plan);
    groups_of_ = &degrees;
  }
  for (const Priced& priced : priced_) {
    if (priced.micro_batch == plan.micro_batch && priced.groups == groups_) return priced.sums;
  }
  priced_.push_back({plan.micro_batch, groups_,
                     pass_sums(job_, estimator_.stage_costs(plan, estimator_.links(plan)))});
  return priced_.back().sums;
}

// The least of all schedules and chunks.
SpanFloor NodeBounds::span_of(const Degrees& degrees, const ShapeRange& range, const PassSums& sums,
                              Plan plan) const {
  SpanFloor least{Seconds(1e300), Seconds(1e300)};
  for (std::size_t i = range.first; i < range.last; ++i) {
    const StepShape& shape = space_.shapes[degrees.shapes][i];
    plan.schedule = shape.schedule;
    plan.virtual_stages = shape.virtual_stages;
    const SpanFloor one = span_floor(job_, sums, plan);
    least.always = std::min(least.always, one.always);
    least.without_traffic = std::min(least.without_traffic, one.without_traffic);
  }
  return least;
}

PlanBound NodeBounds::bound(const Degrees& degrees, const ShapeRange& range, Found found) const {
  PlanBound least{
      .step = Seconds(1e300), .busy = Seconds(1e300), .memory = Bytes(1e300), .fullness = 1e300};
  const SpanFloor span = span_of(degrees, range, found.sums, found.plan);
  if (const Schedule* paired = paired_schedule(space_, degrees)) found.plan.schedule = paired;
  found.plan.recompute = least_recompute(space_, degrees, found.sums);
  const std::vector<Sharding>& shardings = space_.shardings[degrees.shardings];
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    const Sharding& sharding = shardings[i];
    if (sharding.over_all != i) continue;  // a smaller group holds more and updates more
    set_sharding(sharding, degrees, found.plan);
    const Seconds known =
        sharding.zero_stage <= 1 ? std::max(span.always, span.without_traffic) : span.always;
    const PlanBound one = plan_bound(job_, shares_, found.sums, found.plan, known);
    least.memory = std::min(least.memory, one.memory);
    least.fullness = std::min(least.fullness, one.fullness);
    if (one.fullness > 1) continue;
    least.step = std::min(least.step, one.step);
    least.busy = std::min(least.busy, one.busy);
  }
  return least;
}

}  // namespace trainyard
