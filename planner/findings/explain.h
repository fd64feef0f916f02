// Explains a plan: what it spends its step on, what it lost against a better one, and what would
// help most. Every answer about a change is another estimate of the same job with that one thing
// changed. Pure functions over the caller's evaluator.
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

// Why a plan does not fit: a stage needs more than the device's memory, or a node's ranks more than
// its host memory.
struct Infeasible {
  bool on_hosts = false;
  int stage = 0;
  Bytes required, available;  // of a device, `required` has the room to be left (`memory_share`)
};
std::optional<Infeasible> infeasibility(const Estimate& estimate, const Cluster& cluster);

struct PartDifference {
  const BreakdownPart* part = nullptr;
  Seconds winner, other;
  Seconds lost() const { return other - winner; }  // negative: `other` is faster in this part
};

// Why `other` lost against `winner`: it does not fit, or it spent its time on something.
struct Comparison {
  std::optional<Infeasible> memory;
  Seconds lost;                             // of the whole step
  std::vector<PartDifference> differences;  // largest loss first; the parts that differ
};
// The parts in which two steps differ by more than 1e-4 of `step`, which the winner takes; the
// largest loss first.
std::vector<PartDifference> part_differences(const Breakdown& winner, const Breakdown& other,
                                             Seconds step);
Comparison compare(const Candidate& winner, const Candidate& other, const Cluster& cluster);

// The largest part of a step, and the largest of its parts that are overhead.
struct Limits {
  const BreakdownPart* largest = nullptr;
  const BreakdownPart* largest_overhead = nullptr;  // nullptr: there is none
};
Limits limits(const Breakdown& breakdown);
inline Limits limits(const Estimate& estimate) { return limits(estimate.breakdown); }

// A change, and what it does to the step.
struct Remedy {
  std::string change;  // "10 % more NVLink bandwidth", "virtual_stages 4"
  Seconds saved;       // negative: slower
  bool fits = false;
  Bytes peak_memory;
  Bytes host_memory;  // of a node
  double fullness = 0;
  std::optional<PlanRequest> request;  // of the changed plan; nothing: the hardware was changed
};

// Makes an evaluator for any job, as `analytic_evaluator` does. Requires: the job outlives it.
using JobEvaluator = std::function<Evaluator(const PreparedJob& job)>;

// Whether the caller no longer waits. It is asked before each change, with the fraction of them
// that is done. May be empty.
using IsOver = std::function<bool(double done)>;

// What it gains to raise each hardware figure by 10 % (to lower α and host time to match), one at a
// time; the best first. Empty once `is_over` returns true, as below.
std::vector<Remedy> hardware_remedies(const PreparedJob& job, const Candidate& candidate,
                                      const JobEvaluator& evaluate, const IsOver& is_over = {});

// The neighbours of a plan: one key changed, or one degree traded for another. Those that fit come
// first, fastest first; then those that do not, least full first. Where the plan was `asked` for
// with recomputation `auto`, neighbours have that too.
std::vector<Remedy> plan_remedies(const PreparedJob& job, const Candidate& candidate,
                                  const Evaluator& evaluate, const IsOver& is_over = {},
                                  const std::optional<PlanRequest>& asked = {});

}  // namespace trainyard
