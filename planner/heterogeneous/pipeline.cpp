#include "planner/heterogeneous/pipeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/heterogeneous/pricer.h"
#include "planner/heterogeneous/space.h"
#include "planner/heterogeneous/value.h"
#include "planner/request.h"
#include "planner/search/enumeration.h"

namespace trainyard {
namespace {

std::size_t stage_index(int index) { return static_cast<std::size_t>(index); }

// Keeps the better plan of those that fit.
void take_better(GroupedPlan plan, std::optional<GroupedPlan>& best) {
  if (plan.feasible && (!best || is_better(plan, *best))) best = std::move(plan);
}

// ---- The degrees ---------------------------------------------------------------------------

// Visits the requests with t and D: all degrees of expert parallelism and all else that is
// searched, each with its micro-batches in ascending order.
template <typename Visit>
void for_experts(const GroupedJob& job, const SearchSpace& space, int tensor, int data,
                 const Visit& visit) {
  const std::vector<int> sizes = micro_batches(space, job.training.global_batch / data);
  for (const int expert : divisors(std::max(job.model.experts, 1))) {
    if (tensor * data % expert != 0 || !space.expert_parallel.has(expert)) continue;
    const PlanRequest request{.tensor_parallel = tensor,
                              .schedule = "1f1b",
                              .data_parallel = data,
                              .expert_parallel = expert};
    for (PlanRequest& variant : variants_of(job, request, space)) {
      for (const int micro_batch : sizes) {
        variant.micro_batch = micro_batch;
        visit(variant);
      }
    }
  }
}

// Degrees that all groups can have: t inside the node, D replicas, and the rest as stages.
std::vector<PlanRequest> pipeline_requests(const GroupedJob& job,
                                           const GroupSearchOptions& options) {
  const SearchSpace& space = options.space;
  std::vector<PlanRequest> requests;
  int common = 0, devices = 0;
  for (const Cluster& group : job.cluster.groups) {
    common = std::gcd(common, group.devices());
    devices += group.devices();
  }
  for (const int tensor : divisors(job.cluster.groups.front().devices_per_node)) {
    if (!space.tensor_parallel.has(tensor)) continue;
    for (const int data : divisors(common / tensor)) {
      const int stages = devices / (tensor * data);
      if (!space.data_parallel.has(data) || !space.pipeline_parallel.has(stages) ||
          !may_have_stages(options, stages) || job.training.global_batch % data != 0) {
        continue;
      }
      for_experts(job, space, tensor, data, [&](PlanRequest request) {
        request.pipeline_parallel = stages;
        requests.push_back(std::move(request));
      });
    }
  }
  return requests;
}

// Stages at the ends of runs of like stages (same group, layers and recomputation): only between
// these layers are moved.
std::vector<std::size_t> ends_of_runs(const GroupedPlan& priced) {
  const Plan& plan = priced.plan;
  std::vector<std::size_t> group_of;
  for (const std::size_t g : priced.order) {
    group_of.insert(group_of.end(), stage_index(priced.shares[g].stages), g);
  }
  const auto alike = [&](std::size_t a, std::size_t b) {
    return group_of[a] == group_of[b] && plan.layers_per_stage[a] == plan.layers_per_stage[b] &&
           recompute_of(plan, static_cast<int>(a)) == recompute_of(plan, static_cast<int>(b));
  };
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < group_of.size(); ++i) {
    const bool inside = i > 0 && i + 1 < group_of.size() && alike(i - 1, i) && alike(i, i + 1);
    if (!inside) ends.push_back(i);
  }
  return ends;
}

// The plan with one layer moved; nothing where that is not legal or does not fit.
std::optional<GroupedPlan> moved(const PipelinePricer& pricer, std::size_t from, std::size_t to,
                                 const GroupedPlan& found) {
  PlanRequest request = request_of(found.plan);
  if (from == to || request.layers_per_stage[from] == 0) return std::nullopt;
  --request.layers_per_stage[from];
  ++request.layers_per_stage[to];
  const auto plan = pricer.legal(request);
  if (!plan) return std::nullopt;
  GroupedPlan priced = pricer.price(*plan, found.order);
  return priced.feasible ? std::optional(std::move(priced)) : std::nullopt;
}

// Moves a layer where that makes the plan better; false: it does not, and the plan stays.
bool move_layer(const PipelinePricer& pricer, std::size_t from, std::size_t to, GroupedPlan& best) {
  auto priced = moved(pricer, from, to, best);
  if (!priced || !is_better(*priced, best)) return false;
  best = *std::move(priced);
  return true;
}

// Moves layers from stage to stage while that makes the plan better: the dynamic program minimises
// a formula that is only near the step of very unlike stages, and knows no energy. Not where most
// stages differ from their neighbours, for then there are too many moves.
constexpr std::size_t kMostEnds = 24;

void refine(const PipelinePricer& pricer, GroupWatch& watch, GroupedPlan& best) {
  for (bool better = true; better;) {
    better = false;
    const std::vector<std::size_t> ends = ends_of_runs(best);
    if (ends.size() > kMostEnds) return;
    for (const std::size_t from : ends) {
      if (watch.is_over(1)) return;
      for (const std::size_t to : ends) {
        const bool moved = move_layer(pricer, from, to, best);
        better = better || moved;
      }
    }
  }
}

// Offers every plan that differs from this one by a layer moved between the ends of runs.
void offer_neighbours(const PipelinePricer& pricer, const GroupedPlan& found, GroupWatch& watch,
                      GroupedFront& front) {
  const std::vector<std::size_t> ends = ends_of_runs(found);
  if (ends.size() > kMostEnds) return;
  for (const std::size_t from : ends) {
    if (watch.is_over(1)) return;
    for (const std::size_t to : ends) {
      if (auto other = moved(pricer, from, to, found)) front.offer(*std::move(other));
    }
  }
}

// Pareto local search: offers the neighbours of plans on the front, as long as new ones enter it.
void explore(const PipelinePricer& pricer, GroupWatch& watch, GroupedFront& front) {
  for (auto found = front.take_open(); found && !watch.is_over(1); found = front.take_open()) {
    if (!found->plan.layers_per_stage.empty()) offer_neighbours(pricer, *found, watch, front);
  }
}

// The best of all orders of the groups with these degrees, refined.
void refine_orders(const GroupedJob& job, const PipelinePricer& pricer, GroupWatch& watch,
                   GroupedPlan& best) {
  PlanRequest degrees = request_of(best.plan);
  degrees.layers_per_stage.clear();
  degrees.recompute_per_stage.clear();
  degrees.recompute = {};
  const PipelinePricer::Degrees dealing = pricer.degrees_of(pricer.legal(degrees).value());
  std::vector<std::size_t> order(job.cluster.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    for (const Plan& dealt : pricer.dealt(dealing, order, 1)) {
      GroupedPlan other = pricer.price(dealt, order);
      if (!other.feasible) continue;
      refine(pricer, watch, other);
      if (is_better(other, best)) best = std::move(other);
    }
  } while (!watch.is_over(1) && std::next_permutation(order.begin(), order.end()));
}

// The same degrees and order with even layers and one recomputation.
std::optional<GroupedPlan> even_pipeline(const PipelinePricer& pricer, const SearchSpace& space,
                                         const Stack& stack, const GroupedPlan& best) {
  std::optional<GroupedPlan> result;
  PlanRequest even = request_of(best.plan);
  even.layers_per_stage.clear();
  for (const RecomputeChoice& choice : recomputations(space, stack, even.pipeline_parallel)) {
    even.recompute = choice.every_stage;
    even.recompute_per_stage = choice.per_stage;
    if (const auto plan = pricer.legal(even)) take_better(pricer.price(*plan, best.order), result);
  }
  return result;
}

}  // namespace

bool has_pipelines(const GroupedJob& job, const GroupSearchOptions& options) {
  const std::vector<PlanRequest> requests = pipeline_requests(job, options);
  if (options.space.sharding_group.empty() || requests.empty()) return !requests.empty();
  const PipelinePricer pricer(job, options);
  return std::ranges::any_of(requests, [&pricer](const PlanRequest& request) {
    return pricer.legal(request).has_value();
  });
}

namespace {

// Calls `visit` for every order of the groups, until the watch says stop.
template <typename Visit>
void for_orders(const GroupedJob& job, GroupWatch& watch, double done, const Visit& visit) {
  std::vector<std::size_t> order(job.cluster.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    visit(order);
  } while (!watch.is_over(done) && std::next_permutation(order.begin(), order.end()));
}

// Calls `visit` for the legal degrees that may fit, with the fraction that is done, until the watch
// says stop. `visit` returns whether a plan of these degrees fits.
template <typename Visit>
void for_degrees(const GroupedJob& job, const PipelinePricer& pricer, GroupWatch& watch,
                 const Visit& visit) {
  const std::vector<PlanRequest> requests = pipeline_requests(job, pricer.options());
  FittingSizes sizes;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(requests.size());
    if (watch.is_over(done)) return;
    if (!sizes.may_fit(requests[i].micro_batch)) continue;
    const auto plan = pricer.legal(requests[i]);
    if (plan && !visit(*plan, done)) sizes.last_was_too_large();
  }
}

// The best so far, and what a plan must stay below.
struct Incumbent {
  std::optional<GroupedPlan> best;
  double worth = 0;

  double most() const { return best ? std::min(worth, best->value) : worth; }
};

// Takes the best plan of these degrees over all orders of the groups. Returns whether a plan fits;
// true also where a bound leaves an order out.
bool take_best_order(const GroupedJob& job, const PipelinePricer& pricer, const Plan& plan,
                     GroupWatch& watch, double done, Incumbent& incumbent) {
  std::optional<GroupedPlan>& best = incumbent.best;
  const Objective objective = pricer.options().objective;
  const bool by_memory = objective == Objective::memory;
  const bool by_step = is_at_least_step(objective);
  const PipelinePricer::Degrees degrees = pricer.degrees_of(plan);
  bool fits = false;
  for_orders(job, watch, done, [&](const std::vector<std::size_t>& order) {
    if (by_step && pricer.least_step(degrees, order).value() >= incumbent.most()) {
      fits = true;
      return;
    }
    const double most = by_memory && best ? std::min(1.0, best->fullness) : 1;
    for (const Plan& dealt : pricer.dealt(degrees, order, most)) {
      GroupedPlan priced = pricer.price(dealt, order);
      fits = fits || priced.feasible;
      take_better(std::move(priced), best);
    }
  });
  return fits;
}

// Offers what is dealt on all memory, and where memory is an objective on less and less of it: each
// time on less than any plan that is no worse takes. Returns whether a plan fits.
bool offer_dealt(const PipelinePricer& pricer, const PipelinePricer::Degrees& degrees,
                 const std::vector<std::size_t>& order, GroupWatch& watch, double done,
                 GroupedFront& front) {
  double most = 1;
  bool fits = false;
  do {
    double fullest = 0;
    Values best{1e300, 1e300};
    for (const Plan& dealt : pricer.dealt(degrees, order, most)) {
      GroupedPlan priced = pricer.price(dealt, order);
      fullest = std::max(fullest, priced.fullness);
      best = {std::min(best.first, priced.value), std::min(best.second, priced.second_value)};
      fits = fits || priced.feasible;
      front.offer(std::move(priced));
    }
    most = next_memory(pricer.options(), front, most, fullest, best);
  } while (most > 0 && !watch.is_over(done));
  return fits;
}

}  // namespace

GroupedPipelines find_pipelines(const GroupedJob& job, GroupWatch& watch, double worth) {
  const GroupSearchOptions& options = watch.options();
  const PipelinePricer pricer(job, options);
  Incumbent incumbent{.best = {}, .worth = worth};
  for_degrees(job, pricer, watch, [&](const Plan& plan, double done) {
    return take_best_order(job, pricer, plan, watch, done, incumbent);
  });
  GroupedPipelines found{.best = std::move(incumbent.best), .even = {}};
  if (!found.best || pricer.has_named_layers()) return found;
  if (!watch.is_over(1)) refine_orders(job, pricer, watch, *found.best);
  found.even = even_pipeline(pricer, options.space, job.training.stack, *found.best);
  return found;
}

void find_pipelines(const GroupedJob& job, GroupWatch& watch, GroupedFront& front) {
  const PipelinePricer pricer(job, watch.options());
  for_degrees(job, pricer, watch, [&](const Plan& plan, double done) {
    const PipelinePricer::Degrees degrees = pricer.degrees_of(plan);
    bool fits = false;
    for_orders(job, watch, done, [&](const std::vector<std::size_t>& order) {
      fits = offer_dealt(pricer, degrees, order, watch, done, front) || fits;
    });
    return fits;
  });
  if (!pricer.has_named_layers()) explore(pricer, watch, front);
}

std::optional<GroupedPlan> closest_pipeline(const GroupedJob& job, GroupWatch& watch) {
  constexpr double kMostTimes = 1024;  // the share of its memory that a device may need, at most
  GroupSearchOptions options = watch.options();
  options.objective = Objective::memory;
  options.second.reset();
  const PipelinePricer pricer(job, options);
  std::optional<GroupedPlan> closest;
  for_degrees(job, pricer, watch, [&](const Plan& plan, double done) {
    const PipelinePricer::Degrees degrees = pricer.degrees_of(plan);
    for_orders(job, watch, done, [&](const std::vector<std::size_t>& order) {
      const double most = closest ? closest->fullness : kMostTimes;
      for (const Plan& dealt : pricer.dealt(degrees, order, most)) {
        GroupedPlan priced = pricer.price(dealt, order);
        if (!closest || is_better(priced, *closest)) closest = std::move(priced);
      }
    });
    return false;  // a larger micro-batch holds no less
  });
  return closest;
}

GroupedPlan price_pipeline(const GroupedJob& job, const PlanRequest& request,
                           const std::vector<std::size_t>& order,
                           const GroupSearchOptions& options) {
  const PipelinePricer pricer(job, options);
  return pricer.price(pricer.legal(request).value(), order);
}

}  // namespace trainyard
