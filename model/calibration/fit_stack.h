// Fits the parameters of a software stack to published training runs, and scores such fits by
// leaving out one source at a time.
//
// The fit minimises, over the logarithms of the parameters, a soft-l1 loss of ln(predicted /
// measured) plus the squared distance to the priors of model/calibration/stack_parameters.h: rows
// that no value explains pull little, and what the runs do not determine stays at its prior. Each
// source weighs as the root of its number of rows. Deterministic: Levenberg-Marquardt from the
// priors, finished by a compass search (Kolda, Lewis & Torczon 2003) because the estimate has
// kinks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"
#include "model/workload/stack.h"

namespace trainyard {

// A run that was published with its step time.
struct MeasuredRun {
  std::string name;
  std::string source;  // who published it: what is left out together
  PreparedJob job;     // with the stack it ran on, as its document describes it
  Plan plan;           // complete, recomputation decided
  Seconds step_time;

  const Stack& stack() const { return job.job.training.stack; }
};

struct FittedParameter {
  std::string_view name;
  double value = 0;         // base units
  bool determined = false;  // by the runs; false: they say little and the prior stays
};

struct StackFit {
  std::vector<FittedParameter> parameters;  // those that the stack has
  std::vector<double> errors;               // predicted / measured − 1, in the order of the runs
};

// One set of parameters for all of `runs`, each keeping the structure of its own stack.
// Requires: not empty.
StackFit fit_stack(std::span<const MeasuredRun> runs);

// The stack with those of the fitted parameters that its structure has.
Stack with_parameters(Stack stack, const StackFit& fit);

struct HeldOutPrediction {
  std::string name;    // of the run
  std::string source;  // left out
  Seconds predicted;
  Seconds measured;
  bool pooled = false;  // its stack had no run left: parameters of its relatives
};

// Every run predicted with parameters fitted without any run of its source. A stack that has runs
// from other sources is fitted on those. One that has none gets parameters fitted on all remaining
// runs of its relatives, the stacks of its generation: attention alike (fused or not), gradient
// accumulation alike (fused kernels or PyTorch's own); without relatives it gets the priors.
// Structure (booleans, dtypes, overlap) is documentation in all cases. In the order of `runs`;
// `progress` is told the share of them that is done.
std::vector<HeldOutPrediction> leave_one_source_out(
    std::span<const MeasuredRun> runs, const std::function<void(double)>& progress = {});

}  // namespace trainyard
