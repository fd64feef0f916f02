#include "planner/search/worker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/schedule/schedule.h"
#include "planner/held_memory.h"

namespace trainyard {
namespace {

// Plans counted between two looks at the clock, and between two reports of progress.
constexpr std::int64_t kClockInterval = 64;
constexpr std::int64_t kProgressInterval = 4096;

// Counts a plan that does not fit, by what takes more of its fullest stage.
void count_shortfall(const Estimate& estimate, Shortfall& shortfall) {
  ++shortfall.plans;
  if (estimate.stages.empty()) return;
  ++(held_memory(estimate).by_states() ? shortfall.by_states : shortfall.by_activations);
}

bool recomputes(const Plan& plan) {
  return plan.recompute.mode != RecomputeMode::none || !plan.recompute_per_stage.empty();
}

}  // namespace

SearchCounts& SearchCounts::operator+=(const SearchCounts& other) {
  considered += other.considered;
  pruned_by_memory += other.pruned_by_memory;
  pruned_by_objective += other.pruned_by_objective;
  evaluated += other.evaluated;
  illegal += other.illegal;
  infeasible.plans += other.infeasible.plans;
  infeasible.by_states += other.infeasible.by_states;
  infeasible.by_activations += other.infeasible.by_activations;
  return *this;
}

Worker::Worker(SharedSearch& shared, bool reports)
    : shared_(shared),
      reports_(reports && shared.options.progress),
      floors_(shared.estimator, shared.job, shared.space, shared.options.base),
      bounds_(shared.estimator, shared.job, shared.space, shared.shares),
      traffic_(shared.estimator, shared.job),
      request_(shared.options.base) {}

std::int64_t Worker::plans_of(const Degrees& degrees, const ShapeRange& range) const {
  const Enumeration& space = shared_.space;
  const std::size_t recomputes =
      space.recomputes_of(degrees) + (shared_.repeats_some_layers ? 1 : 0);
  return static_cast<std::int64_t>(space.number_of_placements(degrees) *
                                   space.shardings[degrees.shardings].size() * recomputes *
                                   (range.last - range.first));
}

Values Worker::value_of(const PlanBound& bound) const {
  if (shared_.aim == Aim::closest) return {bound.fullness, 0};
  const SearchOptions& options = shared_.options;
  return {objective_bound(shared_.job, options.objective, bound),
          options.second ? objective_bound(shared_.job, *options.second, bound) : 0};
}

Values Worker::value_of(const Plan& plan, const Estimate& estimate) const {
  if (shared_.aim == Aim::closest) return {estimate.fullness, 0};
  const SearchOptions& options = shared_.options;
  const auto value = [&](Objective objective) {
    return objective_value(shared_.job, options.valuation, objective, plan, estimate);
  };
  return {value(options.objective), options.second ? value(*options.second) : 0};
}

bool Worker::too_large(const PlanBound& bound) const {
  return shared_.aim == Aim::best && bound.fullness > 1;
}

void Worker::bound_nodes() {
  found_.clear();
  const std::size_t end = shared_.families_of_round;
  const auto goes_on = [&] {
    return shared_.next_family < end && !shared_.bounding_is_over() && !shared_.round_is_long();
  };
  while (goes_on()) {
    const std::size_t i = shared_.next_family++;
    if (i >= end) break;
    bounds_.start();
    SharedSearch::Family& family = shared_.families[i];
    for (std::size_t d = family.first; d < family.last; ++d) bound_degrees(d);
    family.bounded = true;
  }
  shared_.add_nodes(found_);
}

// Only the least bound of all open families counts: a node above the least so far needs no closer
// look. When time is over, the floor of the next family stands for all later ones (they are
// sorted).
void Worker::bound_open_families() {
  const std::size_t end = shared_.families.size();
  for (std::size_t i = shared_.next_open_family++; i < end; i = shared_.next_open_family++) {
    const SharedSearch::Family& family = shared_.families[i];
    if (shared_.closing_is_over()) {
      shared_.lower_open_families(value_of(PlanBound{.step = family.floor}).first);
      return;
    }
    bounds_.start();
    for (std::size_t d = family.first; d < family.last; ++d) {
      bound_open_degrees(shared_.space.degrees[d]);
    }
  }
}

void Worker::bound_open_degrees(const Degrees& degrees) {
  const auto matters = [this](Seconds step) {
    return value_of(PlanBound{.step = step}).first < shared_.open_families();
  };
  floors_.start(degrees);
  for (const ShapeRange& range : shared_.space.ranges[degrees.shapes]) {
    if (!matters(floors_.without_experts(range)) || !matters(floors_.with_experts(range))) continue;
    auto look = bounds_.look(degrees, range, shared_.options.base);
    if (!look) continue;
    const PlanBound bound = bounds_.bound(degrees, range, *std::move(look));
    if (too_large(bound)) return;  // and so are larger micro-batches
    shared_.lower_open_families(value_of(bound).first);
  }
}

bool Worker::floor_is_too_high(const ShapeRange& range) {
  const auto too_high = [this](Seconds step) {
    return !shared_.has_room_for(value_of({.step = step}));
  };
  return too_high(floors_.without_experts(range)) || too_high(floors_.with_experts(range));
}

// Bounds the nodes of some degrees, micro-batches ascending: where one does not fit, neither does
// any larger one.
void Worker::bound_degrees(std::size_t index) {
  const Degrees& degrees = shared_.space.degrees[index];
  const std::vector<ShapeRange>& ranges = shared_.space.ranges[degrees.shapes];
  floors_.start(degrees);
  const std::int64_t of_a_shape = plans_of(degrees, {1, 0, 1});
  bool fits = true;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto shapes = static_cast<std::int64_t>(ranges[i].last - ranges[i].first);
    const std::int64_t plans = of_a_shape * shapes;
    if (!fits) {
      counts.pruned_by_memory += plans;
      count(plans);
      continue;
    }
    if (floor_is_too_high(ranges[i])) {
      counts.pruned_by_objective += plans;
      count(plans);
      continue;
    }
    auto look = bounds_.look(degrees, ranges[i], shared_.options.base);
    if (!look) {
      counts.illegal += plans;
      count(plans);
      continue;
    }
    const PlanBound bound = bounds_.bound(degrees, ranges[i], *std::move(look));
    fits = !too_large(bound);
    if (fits) {
      found_.push_back(
          {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(i), value_of(bound)});
    } else {
      counts.pruned_by_memory += plans;
      count(plans);
    }
  }
}

void Worker::expand_nodes() {
  for (std::size_t i = shared_.next_node++; i < shared_.nodes.size(); i = shared_.next_node++) {
    if (expand(shared_.nodes[i])) continue;
    std::size_t open = shared_.first_open;
    while (i < open && !shared_.first_open.compare_exchange_weak(open, i)) {
    }
    return;
  }
}

// Expands all plans of a node; false where the search is to stop.
bool Worker::expand(const SearchNode& node) {
  const Degrees& degrees = shared_.space.degrees[node.degrees];
  const ShapeRange& range = shared_.space.ranges[degrees.shapes][node.range];
  if (!shared_.has_room_for(node.bound)) {
    const std::int64_t plans = plans_of(degrees, range);
    counts.pruned_by_objective += plans;
    return !count(plans) || !shared_.pricing_is_over();
  }
  if (shared_.options.keeps_to_deal && degrees.pipeline > 1) expanded.push_back(node);
  Plan plan = *plan_of_node(shared_.job, shared_.space, degrees, range, shared_.options.base);
  const StageCosts costs = shared_.estimator.stage_costs(plan, shared_.estimator.links(plan));
  StageBounds stages(shared_.job, costs);
  const Expansion node_costs{degrees, pass_sums(shared_.job, costs), stages};
  set_degrees(shared_.space, degrees, request_);
  placements_ = {degrees.placement};
  const std::vector<std::size_t>& others = shared_.space.other_placements[degrees.others];
  placements_.insert(placements_.end(), others.begin(), others.end());
  traffic_.start(shared_.space.placements, placements_);
  for (std::size_t i = range.first; i < range.last; ++i) {
    const StepShape& shape = shared_.space.shapes[degrees.shapes][i];
    set_shape(shape, request_);
    plan.schedule = shape.schedule;
    plan.virtual_stages = shape.virtual_stages;
    if (!take_named_layers(degrees, {range.micro_batch, i, i + 1}, plan)) {
      const std::int64_t illegal = plans_of(degrees, {range.micro_batch, i, i + 1});
      counts.illegal += illegal;
      count(illegal);
      continue;
    }
    stages.set_stages(plan);
    if (!expand_shape(node_costs, plan)) return false;
  }
  return true;
}

// Gives the plan the layers that the caller named; false: the chunks of this shape cannot have
// them.
bool Worker::take_named_layers(const Degrees& degrees, const ShapeRange& shape, Plan& plan) const {
  const PlanRequest& base = shared_.options.base;
  if (base.layers_per_stage.empty()) return true;
  auto named = plan_of_node(shared_.job, shared_.space, degrees, shape, base);
  if (named) plan.layers_per_stage = std::move(named->layers_per_stage);
  return named.has_value();
}

// Expands all plans of a node and a shape, one recomputation after the other.
bool Worker::expand_shape(const Expansion& node, Plan& plan) {
  const std::vector<Sharding>& shardings = shared_.space.shardings[node.degrees.shardings];
  known_.assign(shardings.size(), {});
  bool all_too_slow = false;  // with nothing recomputed, and so with any recomputation
  for (const RecomputeChoice& recompute : shared_.space.recomputes) {
    if (!recompute.is_for(node.degrees.pipeline)) continue;
    set_recompute(recompute, request_);
    set_recompute(recompute, plan);
    if (!all_too_slow) node.stages.set_passes(plan);
    const bool too_slow = all_too_slow || passes_are_too_slow(node, plan);
    all_too_slow = too_slow && (all_too_slow || !recomputes(plan));
    const bool goes_on =
        too_slow ? leave_out_shardings(shardings, plan) : expand_shardings(node, shardings, plan);
    if (!goes_on) return false;
  }
  return !shared_.repeats_some_layers || expand_repeated_layers(node, shardings, plan);
}

// Expands every sharding of the passes that are set.
bool Worker::expand_shardings(const Expansion& node, const std::vector<Sharding>& shardings,
                              Plan& plan) {
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    known_[i].fate = Fate::open;
    known_[i].pipeline = Seconds(0);
    if (shardings[i].without_recompute && recomputes(plan)) {
      counts.illegal += std::ssize(placements_);
    } else if (is_settled(shardings[i], i)) {
      leave_out(Fate::too_slow);
    } else {
      set_sharding(shardings[i], request_);
      set_sharding(shardings[i], node.degrees, plan);
      expand_sharding(node, shardings, i, plan);
    }
    if (count(std::ssize(placements_)) && shared_.pricing_is_over()) return false;
  }
  return true;
}

// Counts a plan as pruned under every placement.
void Worker::leave_out(Fate fate) {
  (fate == Fate::too_large ? counts.pruned_by_memory : counts.pruned_by_objective) +=
      std::ssize(placements_);
}

// Holds for all shardings: none makes a pass shorter.
bool Worker::passes_are_too_slow(const Expansion& node, const Plan& plan) {
  const PlanBound bound{.outside = shared_.job.job.training.stack.step_overhead,
                        .busy = computing_of(node, plan)};
  const auto is_too_slow = [&](Seconds span) {
    return !shared_.has_room_for(value_of(with_span(bound, span)));
  };
  return is_too_slow(node.stages.busy()) || is_too_slow(node.stages.last_stage(plan));
}

// Counts all shardings as pruned or illegal: their passes alone are too slow.
bool Worker::leave_out_shardings(const std::vector<Sharding>& shardings, const Plan& plan) {
  const bool repeats = recomputes(plan);
  const auto illegal = std::ranges::count_if(shardings, [repeats](const Sharding& sharding) {
    return repeats && sharding.without_recompute;
  });
  const auto places = std::ssize(placements_);
  counts.illegal += illegal * places;
  counts.pruned_by_objective += (std::ssize(shardings) - illegal) * places;
  if (!repeats) {
    for (Known& known : known_) known.settled = true;
  }
  return !count(std::ssize(shardings) * places) || !shared_.pricing_is_over();
}

// Up to ZeRO-1 only: in later stages traffic of parameters may hide behind copies instead of
// slowing kernels, so that copies can make a step shorter.
bool Worker::only_adds_copies(const Sharding& sharding, std::size_t index) const {
  return shared_.copies_only_cost && sharding.on_device != index && sharding.zero_stage <= 1;
}

bool Worker::is_settled(const Sharding& sharding, std::size_t index) const {
  const Known& on_device = known_[sharding.on_device];
  const bool settled_now = on_device.fate == Fate::too_slow || on_device.fate == Fate::settled;
  return only_adds_copies(sharding, index) && (on_device.settled || settled_now);
}

// What the same sharding over all ranks tells of this one: a smaller group holds and updates more,
// beside equal passes. Where traffic and copies share the passes, their time tells nothing.
Worker::Fate Worker::fate_over_all(const Sharding& sharding, std::size_t index) const {
  if (sharding.over_all == index) return Fate::open;
  const Fate fate = known_[sharding.over_all].fate;
  const bool by_bounds = sharding.zero_stage <= 1 || sharding.offload == Offload{};
  if (fate == Fate::too_slow && by_bounds) return fate;
  return fate == Fate::too_large && shared_.aim == Aim::best ? fate : Fate::open;
}

// A lower bound of the pipeline's time from plans that were priced: the same with everything on the
// device, and, where passes hold no traffic of parameters, the same over all ranks.
Seconds Worker::known_pipeline(const Sharding& sharding) const {
  const Seconds pipeline = known_[sharding.on_device].pipeline;
  if (sharding.zero_stage > 1) return pipeline;
  return std::max(pipeline, known_[sharding.over_all].pipeline);
}

// Offload only makes passes longer: the pipeline takes at least as long as that of the same plan
// with everything on the device, where that one was priced.
void Worker::expand_sharding(const Expansion& node, const std::vector<Sharding>& shardings,
                             std::size_t index, const Plan& plan) {
  const Sharding& sharding = shardings[index];
  Known& known = known_[index];
  known.fate = fate_over_all(sharding, index);
  if (known.fate == Fate::open) {
    known.fate = fate_by_bounds(node, plan, known_pipeline(sharding));
  }
  if (known.fate == Fate::open) {
    price_placements(known);
  } else {
    leave_out(known.fate);
  }
  if (recomputes(plan)) return;
  known.too_large = known.fate == Fate::too_large;
  known.settled = known.fate == Fate::too_slow || known.fate == Fate::settled;
}

// The memory is the same under all placements: where the plan does not fit under one, the rest is
// left out.
void Worker::price_placements(Known& known) {
  known.pipeline = Seconds(std::numeric_limits<double>::infinity());
  auto left = std::ssize(placements_);
  for (const std::size_t placement : placements_) {
    set_placement(shared_.space.placements[placement], request_);
    const std::int64_t evaluated = counts.evaluated;
    const Fate fate = price();
    const Breakdown& parts = estimate_.breakdown;
    const Seconds pipeline = parts.total() - parts.data_parallel - parts.optimizer - parts.other;
    known.pipeline = counts.evaluated > evaluated ? std::min(known.pipeline, pipeline) : Seconds(0);
    if (fate != Fate::open) known.fate = fate;
    --left;
    if (fate != Fate::too_large || shared_.aim == Aim::closest || left == 0) continue;
    counts.pruned_by_memory += left;
    known.pipeline = Seconds(0);
    break;
  }
}

// The bound of a plan's times, from the cheapest bound to the dearest; nothing: the plan cannot
// enter the list.
std::optional<PlanBound> Worker::leaf_bound(const Expansion& node, const Plan& plan,
                                            Seconds pipeline) {
  PlanBound bound = time_bound(shared_.job, shared_.shares, node.sums, plan);
  bound.busy = computing_of(node, plan);
  const auto has_room_after = [&](Seconds span) {
    bound = with_span(bound, span);
    return shared_.has_room_for(value_of(bound));
  };
  if (!has_room_after(std::max(pipeline, node.stages.busy()))) return std::nullopt;
  if (!has_room_after(node.stages.last_stage(plan))) return std::nullopt;
  if (!has_room_after(node.stages.pipeline(plan))) return std::nullopt;
  return bound;
}

void Worker::add_memory(const MemoryUse& use, PlanBound& bound) const {
  constexpr double kBelow = 1 - 1e-9;  // rounding: the estimate sums memory in another order
  bound.memory = std::max(bound.memory, use.device * kBelow);
  bound.fullness = std::max(bound.fullness, fullness(shared_.job.job.cluster, use) * kBelow);
}

// Computed for energy alone: no other objective needs it.
Seconds Worker::computing_of(const Expansion& node, const Plan& plan) const {
  const SearchOptions& options = shared_.options;
  const bool asks = options.objective == Objective::energy || options.second == Objective::energy;
  return asks ? computing_floor(node.sums, plan, node.stages.repeated(plan)) : Seconds(0);
}

bool Worker::is_held_up(const Expansion& node, const Plan& plan) {
  const Seconds step = traffic_.step(plan, node.stages.first_stage(), node.stages.first_passes());
  if (step <= Seconds(0)) return false;
  return !shared_.has_room_for(value_of(with_span({.busy = computing_of(node, plan)}, step)));
}

Worker::Fate Worker::fate_by_bounds(const Expansion& node, const Plan& plan, Seconds pipeline) {
  if (is_held_up(node, plan)) return Fate::held_up;
  std::optional<PlanBound> bound = leaf_bound(node, plan, pipeline);
  if (!bound) return Fate::too_slow;
  if (shared_.aim == Aim::best && node.stages.is_too_full(plan)) return Fate::too_large;
  add_memory(node.stages.memory(plan), *bound);
  return shared_.has_room_for(value_of(*bound)) ? Fate::open : Fate::too_slow;
}

Worker::Fate Worker::price() {
  const Job& job = shared_.job.job;
  const auto plan = plan_if_legal(request_, job.model, job.cluster, job.training);
  if (!plan) {
    ++counts.illegal;
    return Fate::open;
  }
  if (is_promising(*plan)) return judge(*plan);
  ++counts.pruned_by_objective;
  return Fate::settled;
}

// A schedule without a closed form must be played, which costs a hundred estimates: first looks at
// what the plan takes if no stage ever waits.
bool Worker::is_promising(const Plan& plan) {
  if (shared_.aim == Aim::closest || plan.schedule->closed_span != nullptr) return true;
  shared_.estimator.estimate_bound(plan, estimate_);
  return !estimate_.feasible || shared_.has_room_for(value_of(plan, estimate_));
}

Worker::Fate Worker::judge(const Plan& plan) {
  shared_.evaluate(plan, estimate_);
  ++counts.evaluated;
  if (!estimate_.feasible) count_shortfall(estimate_, counts.infeasible);
  if (shared_.aim == Aim::closest || estimate_.feasible) {
    shared_.offer(value_of(plan, estimate_), plan, estimate_);
  }
  return estimate_.feasible ? Fate::settled : Fate::too_large;
}

bool Worker::count(std::int64_t combinations) {
  counts.considered += combinations;
  since_clock_ += combinations;
  if (since_clock_ < kClockInterval) return false;
  const std::int64_t all = shared_.considered += since_clock_;
  since_report_ += since_clock_;
  since_clock_ = 0;
  if (reports_ && since_report_ >= kProgressInterval) {
    since_report_ = 0;
    shared_.options.progress(static_cast<double>(all) / static_cast<double>(shared_.space_size));
  }
  return true;
}

}  // namespace trainyard
