// What a search minimises. Every value but memory grows with the step time and is never below what
// the step time alone makes of it, so that a bound of the step bounds it too.
#pragma once

#include <string_view>

#include "model/cost/estimate.h"
#include "model/cost/reliability_settings.h"
#include "model/job.h"
#include "model/plan/plan.h"

namespace trainyard {

// `memory`: of the fullest rank, so that head-room is largest; `goodput`: the step time over the
// share of the time that failures and checkpoints leave (model/cost/reliability.h).
enum class Objective { step_time, cost, energy, memory, goodput };

// As options and documents spell it: "step-time".
std::string_view objective_name(Objective objective);

// How the objectives are valued.
struct Valuation {
  bool robust = false;  // at `robust_step_time`
  Reliability reliability;
  Checkpointing checkpoint;
};

// The high end of the estimate's interval; and, for the share of the time in which one of the
// devices is a straggler, what its kernels take longer on the stage that has most of them.
Seconds robust_step_time(const Reliability& reliability, const Plan& plan,
                         const Estimate& estimate);
// The same of a step whose interval ends at `high`, with `kernels` on the stage that has most.
Seconds robust_step_time(const Reliability& reliability, const Plan& plan, Seconds high,
                         Seconds kernels);
// What plans may take of a device's memory (`Cluster::memory_share`) so that they fit at the high
// end of their peak's interval too.
double robust_memory_share(const Stack& stack);
// Of the passes of a stage over the step.
Seconds kernels_of(const Plan& plan, const StageEstimate& stage);

// Of a job that gets nowhere finite, too: such plans are ranked by their step.
double goodput_value(Seconds step, double goodput);

// Without a price (a power) the cost (the energy) is infinite.
double objective_value(Objective objective, const Estimate& estimate);
double objective_value(const PreparedJob& job, const Valuation& valuation, Objective objective,
                       const Plan& plan, const Estimate& estimate);

// Of two objectives; of one, the second is 0.
struct Values {
  double first = 0, second = 0;
  friend bool operator==(const Values&, const Values&) = default;
};
// As good in both, and better in one.
inline bool dominates(const Values& a, const Values& b) {
  return a.first <= b.first && a.second <= b.second && !(a == b);
}

}  // namespace trainyard
