// The objectives that a search minimises. Every value but memory grows with the step time, and is
// never below what the step time alone makes of it: a lower bound of the step bounds the value too.
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

// The step at the high end of its interval, with a straggler on the stage that has most kernel
// time: high + kernels·share·(1/speed − 1). `share` is that of the time in which some device of the
// plan is a straggler.
Seconds robust_step_time(const Reliability& reliability, const Plan& plan,
                         const Estimate& estimate);
// The same of a step whose interval ends at `high`, with `kernels` on the stage that has most.
Seconds robust_step_time(const Reliability& reliability, const Plan& plan, Seconds high,
                         Seconds kernels);
// The share of a device's memory (`Cluster::memory_share`) that plans may take so that they fit at
// the high end of their peak's interval, too.
double robust_memory_share(const Stack& stack);
// Kernel time of a stage's passes, all micro-batches of a step.
Seconds kernels_of(const Plan& plan, const StageEstimate& stage);

// step/goodput. It stays finite for a job that makes no progress, so that such plans are ranked by
// their step.
double goodput_value(Seconds step, double goodput);

// The value of an objective. Cost without a price and energy without a power are infinite. The
// first form knows no reliability: goodput is the step time there.
double objective_value(Objective objective, const Estimate& estimate);
double objective_value(const PreparedJob& job, const Valuation& valuation, Objective objective,
                       const Plan& plan, const Estimate& estimate);

// Values of two objectives; `second` is 0 where there is only one.
struct Values {
  double first = 0, second = 0;
  friend bool operator==(const Values&, const Values&) = default;
};
// Whether `a` is as good as `b` in both values, and better in one.
inline bool dominates(const Values& a, const Values& b) {
  return a.first <= b.first && a.second <= b.second && !(a == b);
}

}  // namespace trainyard
