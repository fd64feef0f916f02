// Fits the uncertainty intervals of stacks: that of step times from the residuals of held-out
// predictions (leave-one-source-out), that is, from how far the truth lay from predictions for a
// source that the parameters had not seen; that of memory from published peaks.
//
// The size of a residual is |ln(measured / predicted)| divided by the factor by which its
// prediction left the runs it was made from (model/cost/interval.h). The interval of a stack
// reaches to the 80 % quantile of the sizes among dense runs, where runs of other stacks weigh
// less; networks with experts have a factor of their own. Both ends are equally far in logarithm: a
// new source is as likely faster as slower. This is split conformal prediction (Vovk et al. 2005;
// Lei et al. 2018) with weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/calibration/fit_stack.h"
#include "model/cost/interval.h"

namespace trainyard {

inline constexpr double kIntervalShare = 0.8;     // share of the runs that should lie inside
inline constexpr double kOtherStackWeight = 0.2;  // weight of a run of another stack
inline constexpr double kUnseenStack = 1.5;       // factor on the width if a stack has no runs

struct IntervalFit {
  std::string stack;
  double width = 0;  // of ln(measured / predicted) to one side, for dense networks
  double moe = 1;    // factor on `width` for mixture-of-experts networks
  StackEvidence evidence;
  Interval memory;
};

// The smallest value such that the values up to it have `share` of the total weight.
// Requires: as many weights as values, not empty, positive weights.
double weighted_quantile(std::span<const double> values, std::span<const double> weights,
                         double share);

// Adds one run to the evidence.
void add_evidence(const MeasuredRun& run, StackEvidence& evidence);

// The evidence of all runs of `stack`, except those of one source.
StackEvidence evidence_of(std::span<const MeasuredRun> runs, const std::string& stack,
                          const std::string& without_source = {});

// One fit for each stack, in the order of first runs; the last one, without a name, is for stacks
// that have no runs. Requires: a prediction for every run, in the order of the runs.
std::vector<IntervalFit> fit_intervals(std::span<const MeasuredRun> runs,
                                       std::span<const HeldOutPrediction> predictions);

// The interval of every run, fitted without the run's own source. Requires: as fit_intervals.
std::vector<Interval> held_out_intervals(std::span<const MeasuredRun> runs,
                                         std::span<const HeldOutPrediction> predictions);

// A published peak of memory.
struct PeakResidual {
  std::string source, stack;
  double ratio = 1;  // measured over predicted

  friend bool operator==(const PeakResidual&, const PeakResidual&) = default;
};

// The 10 % and 90 % quantiles of the residuals, weighted as those of times; the default of a stack
// if there are none. Equal residuals of one source count once: they are plans of a table that
// differ in nothing that memory depends on. No memory figure was fitted, so none is held out.
// Predictions may err to one side, so the two ends are not equally far.
Interval fit_memory_interval(std::span<const PeakResidual> peaks, const std::string& stack);

// The stack with the interval that was fitted for it.
Stack with_interval(Stack stack, const IntervalFit& fit);

}  // namespace trainyard
