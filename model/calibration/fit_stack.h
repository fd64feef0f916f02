// Fits the parameters of a software stack to published training runs, and scores such fits by
// leaving out one source at a time.
//
// The fit minimises, over the logarithms of the parameters, a soft-l1 loss of ln(predicted /
// measured) plus the squared distance to the priors of model/calibration/stack_parameters.h. So
// rows that no value explains pull little, and parameters that the runs do not determine stay at
// their priors. Each source is weighted by the square root of its number of rows. Deterministic:
// Levenberg-Marquardt from the priors, then a compass search (Kolda, Lewis & Torczon 2003) because
// the estimate has kinks.
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
  std::string source;  // who published it; runs of one source are left out together
  PreparedJob job;     // with the stack that it ran on, as its document describes it
  Plan plan;           // complete, with recomputation decided
  Seconds step_time;

  const Stack& stack() const { return job.job.training.stack; }
};

struct FittedParameter {
  std::string_view name;
  double value = 0;         // base units
  bool determined = false;  // false: the runs say little about it, so it stays near its prior
};

struct StackFit {
  std::vector<FittedParameter> parameters;  // those that any of the runs' stacks has
  std::vector<double> errors;               // predicted / measured − 1, in the order of the runs
};

// Fits one set of parameters to all of `runs`; each run keeps the structure of its own stack.
// Requires: at least one run.
StackFit fit_stack(std::span<const MeasuredRun> runs);

// The stack with fitted values of the parameters that its structure has, or their priors.
Stack with_parameters(Stack stack, const StackFit& fit);

struct HeldOutPrediction {
  std::string name;    // of the run
  std::string source;  // of the run: left out of its fit
  Seconds predicted;
  Seconds measured;
  bool pooled = false;  // its stack had no other run, so parameters of its relatives were used
};

// Predicts every run with parameters fitted without any run of its source. A stack that has runs
// from other sources is fitted on those. Otherwise it is fitted on all remaining runs of its
// relatives, the stacks of its generation: attention alike (fused or not) and gradient accumulation
// alike (fused kernels or PyTorch's own). Without relatives it gets the priors. Structure
// (booleans, dtypes, overlap) always comes from documentation. Results are in the order of `runs`;
// `progress` is called with the fraction that is done.
std::vector<HeldOutPrediction> leave_one_source_out(
    std::span<const MeasuredRun> runs, const std::function<void(double)>& progress = {});

}  // namespace trainyard
