// The worker's plans that recompute only some layers of each stage in full: which numbers of layers
// are worth a price.
#include <algorithm>
#include <limits>
#include <utility>

#include "model/bisection.h"
#include "planner/offered.h"
#include "planner/search/worker.h"

namespace trainyard {
namespace {

int up_to_step(int layers, int step) { return (layers + step - 1) / step * step; }

}  // namespace

// The step between numbers of layers that the software can recompute. Requires: it can recompute
// some without all.
int Worker::layers_step(const Plan& plan) const {
  return repeated_layers_step(shared_.job.job.training.stack, plan.virtual_stages);
}

// Expands full recomputation of only some layers of each stage, for the shardings that do not fit
// without: where a plan fits without recomputation, that is the fastest. The exception are copies
// of activations to the hosts that outlast a pass: layers that are recomputed are not copied. Plans
// with copies are left out where as few recomputed layers suffice with everything on the device.
bool Worker::expand_repeated_layers(const Expansion& node, const std::vector<Sharding>& shardings,
                                    Plan& plan) {
  for (std::size_t i = 0; i < shardings.size(); ++i) {
    if (shardings[i].without_recompute) {
      counts.illegal += std::ssize(placements_);
    } else {
      expand_repeated_sharding(node, shardings[i], i, plan);
    }
    if (count(std::ssize(placements_)) && shared_.pricing_is_over()) return false;
  }
  return true;
}

void Worker::expand_repeated_sharding(const Expansion& node, const Sharding& sharding,
                                      std::size_t index, Plan& plan) {
  Known& known = known_[index];
  const bool by_device = only_adds_copies(sharding, index);
  const Known& on_device = known_[sharding.on_device];
  const int end = by_device ? on_device.settled_layers : node.stages.most_layers();
  set_sharding(sharding, request_);
  set_sharding(sharding, node.degrees, plan);
  const bool settled = by_device && on_device.settled;
  if (!settled && may_repeat_rather_than_copy(node, plan)) {
    price_any_layers(node, end, plan);
  } else if (!settled && shared_.repeats_any_layers) {
    price_every_number(node, end, plan);
  } else if (!settled && known.too_large) {
    known.settled_layers = price_fewest_layers(node, end, plan);
  } else {
    leave_out(Fate::too_slow);
  }
}

bool Worker::may_repeat_rather_than_copy(const Expansion& node, Plan& plan) {
  if (plan.offload.activations == OffloadTarget::none) return false;
  plan.recompute = {};
  node.stages.set_passes(plan);
  return node.stages.copies_show(plan);
}

// Bounds a whole range of numbers of layers: passes take at least what they take with the fewest
// recomputed, and memory is at least that with the most.
bool Worker::has_room_for_any(const Expansion& node, LayerRange range, Plan& plan) {
  plan.recompute = {RecomputeMode::full, range.first};
  node.stages.set_passes(plan);
  std::optional<PlanBound> bound = leaf_bound(node, plan, Seconds(0));
  if (!bound) return false;
  plan.recompute = {RecomputeMode::full, range.end - 1};
  add_memory(node.stages.memory(plan), *bound);
  return !too_large(*bound) && shared_.has_room_for(value_of(*bound));
}

// Halves the range down to single numbers, and leaves out halves that cannot be on the front.
bool Worker::price_any_of(const Expansion& node, LayerRange range, Plan& plan) {
  if (range.first >= range.end || !has_room_for_any(node, range, plan)) return false;
  if (range.end - range.first == 1) {
    return range.first % layers_step(plan) == 0 && price_layers(range.first);
  }
  const int middle = range.first + (range.end - range.first) / 2;
  const bool fewer = price_any_of(node, {range.first, middle}, plan);
  const bool more = price_any_of(node, {middle, range.end}, plan);
  return fewer || more;
}

bool Worker::price_layers(int layers) {
  const Job& job = shared_.job.job;
  request_.recompute = {RecomputeMode::full, layers};
  bool priced = false;
  for (const std::size_t placement : placements_) {
    set_placement(shared_.space.placements[placement], request_);
    const auto plan = plan_if_legal(request_, job.model, job.cluster, job.training);
    if (!plan || !is_promising(*plan)) continue;
    shared_.evaluate(*plan, estimate_);
    if (!estimate_.feasible) continue;
    priced = true;
    shared_.offer(value_of(*plan, estimate_), *plan, estimate_);
  }
  return priced;
}

void Worker::price_every_number(const Expansion& node, int end, Plan& plan) {
  const bool priced = price_any_of(node, {1, end}, plan);
  (priced ? counts.evaluated : counts.pruned_by_objective) += std::ssize(placements_);
}

// The numbers of layers that neither passes nor copies make too slow: passes take longer with more
// layers, copies with fewer.
Worker::LayerRange Worker::worthwhile(const Expansion& node, const PlanBound& bound, int end,
                                      Plan& plan) {
  const auto has_room = [&](Seconds span) {
    return shared_.has_room_for(value_of(with_span(bound, span)));
  };
  LayerRange range{1, end};
  if (range.first >= end || !has_room(node.stages.busy_with(plan, 1))) return {1, 1};
  range.end = first_where(
      1, end, [&](int layers) { return !has_room(node.stages.busy_with(plan, layers)); });
  range.first = first_where(
      1, range.end, [&](int layers) { return has_room(node.stages.link_with(plan, layers)); });
  return range;
}

Worker::BoundedLayers Worker::bounded_layers(const Expansion& node, int end, Plan& plan) {
  BoundedLayers bounded;
  plan.recompute = {RecomputeMode::full, 1};
  const PlanBound common = plan_bound(shared_.job, shared_.shares, node.sums, plan);
  LayerRange range = worthwhile(node, common, end, plan);
  if (range.first >= range.end) return bounded;
  range.first = std::max(range.first, fewest_that_fit(node, range.end, plan));
  const int step = layers_step(plan);
  for (int layers = up_to_step(range.first, step); layers < range.end; layers += step) {
    plan.recompute = {RecomputeMode::full, layers};
    node.stages.set_passes(plan);
    const Values value = value_of(with_span(common, node.stages.pipeline(plan)));
    if (shared_.has_room_for(value)) bounded.emplace_back(value, layers);
  }
  std::ranges::sort(bounded, [](const auto& a, const auto& b) {
    return std::pair(a.first.first, a.second) < std::pair(b.first.first, b.second);
  });
  return bounded;
}

void Worker::price_any_layers(const Expansion& node, int end, Plan& plan) {
  const BoundedLayers bounded = bounded_layers(node, end, plan);
  for (const std::size_t placement : placements_) {
    set_placement(shared_.space.placements[placement], request_);
    price_best_of(bounded, plan);
  }
}

// Numbers whose bound is above the best value so far are not priced, except on a front.
void Worker::price_best_of(const BoundedLayers& bounded, Plan& plan) {
  const Job& job = shared_.job.job;
  double best = std::numeric_limits<double>::infinity();
  bool priced = false;
  for (const auto& [bound, layers] : bounded) {
    if (bound.first > best && !shared_.options.second) break;
    request_.recompute = plan.recompute = {RecomputeMode::full, layers};
    const auto legal = plan_if_legal(request_, job.model, job.cluster, job.training);
    if (!legal) {
      ++counts.illegal;
      return;
    }
    if (!is_promising(*legal)) continue;
    shared_.evaluate(*legal, estimate_);
    if (!estimate_.feasible) continue;
    priced = true;
    const Values value = value_of(*legal, estimate_);
    best = std::min(best, value.first);
    shared_.offer(value, *legal, estimate_);
  }
  ++(priced ? counts.evaluated : counts.pruned_by_objective);
}

// By the stages that are mostly the fullest. Where another stage is fuller, more layers are needed.
int Worker::fewest_that_fit(const Expansion& node, int end, Plan& plan) {
  return first_where(1, end, [&](int layers) {
    plan.recompute = {RecomputeMode::full, layers};
    return !node.stages.is_too_full(plan);
  });
}

int Worker::price_fewest_layers(const Expansion& node, int end, Plan& plan) {
  const int step = layers_step(plan);
  for (int layers = up_to_step(fewest_that_fit(node, end, plan), step); layers < end;
       layers += step) {
    plan.recompute = {RecomputeMode::full, layers};
    node.stages.set_passes(plan);
    if (is_held_up(node, plan) || !leaf_bound(node, plan, Seconds(0))) {
      leave_out(Fate::too_slow);
      return layers;
    }
    const std::optional<bool> fits = price_these_layers(layers);
    if (!fits) return end;
    if (*fits) return layers;
  }
  leave_out(Fate::too_large);
  return end;
}

// Stops at the first placement under which the plan does not fit: it fits under none.
std::optional<bool> Worker::price_these_layers(int layers) {
  const Job& job = shared_.job.job;
  request_.recompute = {RecomputeMode::full, layers};
  std::optional<bool> fits;
  SearchCounts found;  // if these layers are enough
  for (const std::size_t placement : placements_) {
    set_placement(shared_.space.placements[placement], request_);
    const auto plan = plan_if_legal(request_, job.model, job.cluster, job.training);
    if (!plan) {
      ++found.illegal;
      continue;
    }
    fits = true;
    if (!is_promising(*plan)) {
      ++found.pruned_by_objective;
      continue;
    }
    shared_.evaluate(*plan, estimate_);
    if (!estimate_.feasible) return false;
    ++found.evaluated;
    shared_.offer(value_of(*plan, estimate_), *plan, estimate_);
  }
  counts += found;
  return fits;
}

}  // namespace trainyard
