#include "planner/objective.h"

#include <algorithm>
#include <limits>

#include "model/cost/interval.h"
#include "model/cost/reliability.h"

namespace trainyard {
namespace {

// The share of the time in which some device of the plan is slow and not yet found:
// devices·detection/MTBF, 1 at most.
double slow_share(const Stragglers& stragglers, const Plan& plan) {
  if (stragglers.mtbf <= Seconds(0)) return 0;
  return std::min(1.0, plan.devices() * stragglers.detection / stragglers.mtbf);
}

}  // namespace

std::string_view objective_name(Objective objective) {
  switch (objective) {
    case Objective::step_time:
      return "step-time";
    case Objective::cost:
      return "cost";
    case Objective::energy:
      return "energy";
    case Objective::memory:
      return "memory";
    case Objective::goodput:
      return "goodput";
  }
  return "";
}

Seconds robust_step_time(const Reliability& reliability, const Plan& plan,
                         const Estimate& estimate) {
  Seconds kernels;
  for (const StageEstimate& stage : estimate.stages) {
    kernels = std::max(kernels, kernels_of(plan, stage));
  }
  return robust_step_time(reliability, plan, estimate.step_time_high, kernels);
}

Seconds robust_step_time(const Reliability& reliability, const Plan& plan, Seconds high,
                         Seconds kernels) {
  if (!reliability.stragglers) return high;
  const Stragglers& stragglers = *reliability.stragglers;
  const double longer = slow_share(stragglers, plan) * (1 / stragglers.speed - 1);
  return high + kernels * longer;
}

double robust_memory_share(const Stack& stack) { return 1 / memory_interval(stack).high; }

Seconds kernels_of(const Plan& plan, const StageEstimate& stage) {
  const Breakdown& spent = stage.exposed;
  return (spent.compute + spent.embedding_head + spent.recompute) * plan.microbatches;
}

double objective_value(Objective objective, const Estimate& estimate) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  switch (objective) {
    case Objective::step_time:
    case Objective::goodput:
      return estimate.step_time.value();
    case Objective::cost:
      return estimate.cost_per_step ? estimate.cost_per_step->value() : kUnknown;
    case Objective::energy:
      return estimate.energy_per_step ? estimate.energy_per_step->value() : kUnknown;
    case Objective::memory:
      return estimate.peak_memory.value();
  }
  return kUnknown;
}

double goodput_value(Seconds step, double goodput) {
  constexpr double kLeast = 1e-9;
  return step.value() / std::max(kLeast, goodput);
}

double objective_value(const PreparedJob& job, const Valuation& valuation, Objective objective,
                       const Plan& plan, const Estimate& estimate) {
  double value = objective_value(objective, estimate);
  if (objective == Objective::goodput) {
    const GoodputEstimate left = estimate_goodput(job, plan, estimate.step_time,
                                                  valuation.reliability, valuation.checkpoint);
    value = goodput_value(estimate.step_time, left.goodput);
  }
  if (valuation.robust && objective != Objective::memory) {
    value *=
        std::max(1.0, robust_step_time(valuation.reliability, plan, estimate) / estimate.step_time);
  }
  return value;
}

}  // namespace trainyard
