#include "planner/heterogeneous/value.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "model/cost/interval.h"
#include "model/cost/money.h"
#include "model/cost/reliability.h"
#include "planner/bound/bound.h"
#include "planner/objective.h"

namespace trainyard {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

template <typename Q>
void add_known(std::optional<Q>& sum, const std::optional<Q>& more) {
  sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
}

// Adds up cost and energy of the groups at work, and finds how full their fullest device is.
void add_up(const UnlikeCluster& cluster, GroupedPlan& found) {
  found.cost_per_step = Dollars(0);
  found.energy_per_step = Joules(0);
  found.fullness = 0;
  for (std::size_t g = 0; g < found.shares.size(); ++g) {
    const GroupShare& share = found.shares[g];
    const Cluster& group = cluster.groups[g];
    if (share.stages == 0) continue;
    const Seconds busy = std::min(share.busy, found.step_time);
    add_known(found.cost_per_step, cost_of(group, found.step_time));
    add_known(found.energy_per_step, energy_of(group, found.step_time, busy));
    found.fullness = std::max(found.fullness, share.peak_memory / group.usable_memory());
  }
}

void set_interval(std::span<const PreparedJob> at_work, const Plan& plan, GroupedPlan& found) {
  Interval widest;
  for (const PreparedJob& job : at_work) {
    const Interval own = step_interval(job.job, plan);
    widest = {std::min(widest.low, own.low), std::max(widest.high, own.high)};
  }
  found.step_time_low = found.step_time * widest.low;
  found.step_time_high = found.step_time * widest.high;
}

double value_by(Objective objective, const GroupedPlan& found) {
  switch (objective) {
    case Objective::step_time:
      break;
    case Objective::cost:
      return found.cost_per_step ? found.cost_per_step->value() : kUnknown;
    case Objective::energy:
      return found.energy_per_step ? found.energy_per_step->value() : kUnknown;
    case Objective::memory:
      return found.fullness;
    case Objective::goodput:
      return goodput_value(found.step_time, found.goodput.value_or(1));
  }
  return found.step_time.value();
}

// The robust step over the step.
double robust_factor(const Valuation& valuation, const Plan& plan, const GroupedPlan& found) {
  if (!valuation.robust) return 1;
  Seconds kernels;
  for (const GroupShare& share : found.shares) kernels = std::max(kernels, share.kernels);
  const Seconds robust =
      robust_step_time(valuation.reliability, plan, found.step_time_high, kernels);
  return std::max(1.0, robust / found.step_time);
}

}  // namespace

Plan plan_of_all(const GroupedPlan& found) {
  Plan plan = found.plan;
  if (found.use != GroupUse::replicas) return plan;
  plan.data_parallel = 0;
  for (const GroupShare& share : found.shares) plan.data_parallel += share.replicas;
  return plan;
}

LeastGoodput least_goodput(std::span<const PreparedJob> clusters, const Plan& plan, Seconds step,
                           const Valuation& valuation) {
  LeastGoodput least{.goodput = kUnknown};
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const double goodput =
        estimate_goodput(clusters[i], plan, step, valuation.reliability, valuation.checkpoint)
            .goodput;
    if (goodput < least.goodput) least = {i, goodput};
  }
  return least;
}

bool needs_goodput(const GroupSearchOptions& options) {
  return asks_for(options, Objective::goodput);
}

bool asks_for(const GroupSearchOptions& options, Objective objective) {
  return options.objective == objective || options.second == objective;
}

void set_value(const UnlikeCluster& cluster, std::span<const PreparedJob> at_work,
               const GroupSearchOptions& options, GroupedPlan& found) {
  const Plan plan = plan_of_all(found);
  add_up(cluster, found);
  set_interval(at_work, plan, found);
  if (needs_goodput(options)) {
    found.goodput = least_goodput(at_work, plan, found.step_time, options.valuation).goodput;
  }
  const double factor = robust_factor(options.valuation, plan, found);
  const auto value = [&](Objective objective) {
    return value_by(objective, found) * (objective == Objective::memory ? 1 : factor);
  };
  found.value = value(options.objective);
  if (options.second) found.second_value = value(*options.second);
}

bool is_at_least_step(Objective objective) {
  return objective == Objective::step_time || objective == Objective::goodput;
}

bool is_better(const GroupedPlan& a, const GroupedPlan& b) {
  return std::tuple(a.value, a.step_time) < std::tuple(b.value, b.step_time);
}

// Cost: however the work is dealt out, it costs at least what all of it costs at the peak of the
// cheapest group. Memory: the states of the job over the memory of all devices.
double value_bound(std::span<const PreparedJob> own, const GroupSearchOptions& options,
                   Seconds step) {
  const Objective objective = options.objective;
  if (objective == Objective::step_time || objective == Objective::goodput) return step.value();
  double least = kUnknown;
  Bytes memory;
  for (const PreparedJob& job : own) {
    // A group that cannot compute in the precision takes no share and costs nothing.
    if (!job.job.cluster.device.supports(job.job.training.precision)) continue;
    const int devices = job.job.cluster.devices();
    memory += job.job.cluster.usable_memory() * static_cast<double>(devices);
    const double bound = objective_bound(job, parameter_shares(job), objective,
                                         offloads_of(job.job, options.space, {}));
    least = std::min(least, objective == Objective::memory ? bound * devices : bound);
  }
  return objective == Objective::memory ? least / memory.value() : least;
}

}  // namespace trainyard
