// Intervals of stacks from the residuals of held-out predictions (leave-one-source-out): how far
// the truth lay from predictions of a source that the parameters had not seen; and from those of
// peaks of memory.
//
// The size of a residual is |ln(measured / predicted)| over the factor by which its prediction left
// the runs it was made from (model/cost/interval.h). The interval of a stack reaches to the 80 %
// quantile of the sizes among dense runs, those of other stacks counting less; experts have a
// factor of their own. Both ends are equally far in logarithm: a new source is as likely faster as
// slower. This is split conformal prediction (Vovk et al. 2005; Lei et al. 2018) with weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/calibration/fit_stack.h"
#include "model/cost/interval.h"

namespace trainyard {

inline constexpr double kIntervalShare = 0.8;     // of the runs that should lie inside
inline constexpr double kOtherStackWeight = 0.2;  // of a run of another stack
inline constexpr double kUnseenStack = 1.5;       // widening where a stack has no runs of its own

struct IntervalFit {
  std::string stack;
  double width = 0;  // of ln(measured / predicted), one side, dense networks
  double moe = 1;    // factor on it for mixture-of-experts networks
  StackEvidence evidence;
  Interval memory;
};

// The smallest value that `share` of the weight does not exceed.
// Requires: as many weights as values, not empty, positive weights.
double weighted_quantile(std::span<const double> values, std::span<const double> weights,
                         double share);

// One run more.
void add_evidence(const MeasuredRun& run, StackEvidence& evidence);

// What the runs of `stack` were like, without those of one source.
StackEvidence evidence_of(std::span<const MeasuredRun> runs, const std::string& stack,
                          const std::string& without_source = {});

// Stacks in the order of their first run; the last, without a name, is for stacks that have no
// runs. Requires: a prediction for every run, in its order.
std::vector<IntervalFit> fit_intervals(std::span<const MeasuredRun> runs,
                                       std::span<const HeldOutPrediction> predictions);

// Of every run, from the residuals and the evidence of the other sources. Requires: the same.
std::vector<Interval> held_out_intervals(std::span<const MeasuredRun> runs,
                                         std::span<const HeldOutPrediction> predictions);

// A published peak of memory, measured over predicted.
struct PeakResidual {
  std::string source, stack;
  double ratio = 1;

  friend bool operator==(const PeakResidual&, const PeakResidual&) = default;
};

// 10 % and 90 % quantiles of the residuals, weighed as those of times. Equal ones of a source are
// one: plans of a table that differ in nothing that their memory depends on. No figure of memory
// was fitted, so that none is held out; and predictions may err to one side, so that the ends are
// not equally far. The default of a stack where there are none.
Interval fit_memory_interval(std::span<const PeakResidual> peaks, const std::string& stack);

// The stack with the interval that was fitted for it.
Stack with_interval(Stack stack, const IntervalFit& fit);

}  // namespace trainyard
