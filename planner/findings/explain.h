// Why a plan is as it is: what it spends its step on, what it lost against a better one, and what
// would help most. Answers are measured, not argued: everything is a re-estimate of the same job
// with one thing changed. Pure functions over the caller's evaluator.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/breakdown.h"
#include "planner/planner.h"

namespace trainyard {

// A stage that does not fit the device, or all that lies on the hosts of a node: the answer is no.
struct Infeasible {
  bool on_hosts = false;
  int stage = 0;
  Bytes required, available;  // of a device with the room that is to be left (`memory_share`)
};
std::optional<Infeasible> infeasibility(const Estimate& estimate, const Cluster& cluster);

struct PartDifference {
  const BreakdownPart* part = nullptr;
  Seconds winner, other;
  Seconds lost() const { return other - winner; }  // negative: the other one gained
};

// Why `other` lost against `winner`: it does not fit, or it spent its time on something.
struct Comparison {
  std::optional<Infeasible> memory;
  Seconds lost;                             // of the whole step
  std::vector<PartDifference> differences;  // largest loss first; the parts that differ
};
// Those of two steps of which the first takes `step`, as a comparison has them.
std::vector<PartDifference> part_differences(const Breakdown& winner, const Breakdown& other,
                                             Seconds step);
Comparison compare(const Candidate& winner, const Candidate& other, const Cluster& cluster);

// What takes the largest part of the step, and the largest part of the overhead.
struct Limits {
  const BreakdownPart* largest = nullptr;
  const BreakdownPart* largest_overhead = nullptr;  // nullptr: there is none
};
Limits limits(const Breakdown& breakdown);
inline Limits limits(const Estimate& estimate) { return limits(estimate.breakdown); }

// Something changed and what it does to the step.
struct Remedy {
  std::string change;  // "10 % more NVLink bandwidth", "virtual_stages 4"
  Seconds saved;       // negative: slower
  bool fits = false;
  Bytes peak_memory;
  Bytes host_memory;  // of a node
  double fullness = 0;
  std::optional<PlanRequest> request;  // of another plan
};

// Prices plans of any job, as `analytic_evaluator` does. The job outlives the evaluator.
using JobEvaluator = std::function<Evaluator(const PreparedJob& job)>;

// Asked before each change, with the share of them that is done: whether the caller no longer
// waits. May be empty.
using IsOver = std::function<bool(double done)>;

// Every hardware figure raised by 10 % (α and host time lowered to match), one at a time; best
// first. Nothing once it is over; as below.
std::vector<Remedy> hardware_remedies(const PreparedJob& job, const Candidate& candidate,
                                      const JobEvaluator& evaluate, const IsOver& is_over = {});

// The neighbours of a plan: one key changed, or one degree traded for another. Those that fit come
// first, the fastest of them before; then those that do not, the smallest before.
std::vector<Remedy> plan_remedies(const PreparedJob& job, const Candidate& candidate,
                                  const Evaluator& evaluate, const IsOver& is_over = {});

}  // namespace trainyard
