#include "model/calibration/interval_fit.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace trainyard {
namespace {

struct Residual {
  std::string source, stack;
  bool experts = false;
  double widening = 1;  // factor by which the prediction left the runs it was made from
  double size = 0;
};

// The widening of a prediction that is made without the runs of this run's source.
double held_out_widening(std::span<const MeasuredRun> runs, const MeasuredRun& run) {
  const StackEvidence evidence = evidence_of(runs, run.stack().name, run.source);
  if (evidence.runs == 0) return kUnseenStack * run.job.job.cluster.device.interval_widening;
  Job job = run.job.job;
  job.training.stack.evidence = evidence;
  job.training.stack.interval_moe = 1;
  return interval_widening(job, run.plan);
}

std::vector<Residual> residuals_of(std::span<const MeasuredRun> runs,
                                   std::span<const HeldOutPrediction> predictions) {
  assert(runs.size() == predictions.size() && "a prediction for every run");
  std::vector<Residual> residuals;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const MeasuredRun& run = runs[i];
    const double widening = held_out_widening(runs, run);
    const double distance = std::abs(std::log(run.step_time / predictions[i].predicted));
    residuals.push_back({.source = run.source,
                         .stack = run.stack().name,
                         .experts = run.job.job.model.experts > 0,
                         .widening = widening,
                         .size = distance / widening});
  }
  return residuals;
}

// The residuals of dense runs, or of runs with experts, without one source, with their weights for
// `stack`. A source weighs the square root of its number of runs.
struct Weighed {
  std::vector<double> sizes, weights;
};
Weighed weighed(std::span<const Residual> residuals, const std::string& stack,
                const std::string& without_source, bool experts) {
  std::map<std::string_view, int> rows;
  for (const Residual& residual : residuals) ++rows[residual.source];
  Weighed out;
  for (const Residual& residual : residuals) {
    if (residual.source == without_source || residual.experts != experts) continue;
    const double likeness = residual.stack == stack ? 1 : kOtherStackWeight;
    out.sizes.push_back(residual.size);
    out.weights.push_back(likeness / std::sqrt(rows[residual.source]));
  }
  return out;
}

IntervalFit fit_without(std::span<const Residual> residuals, const std::string& stack,
                        const std::string& without_source) {
  IntervalFit fit{.stack = stack, .moe = Stack{}.interval_moe};
  const Weighed dense = weighed(residuals, stack, without_source, false);
  const Weighed experts = weighed(residuals, stack, without_source, true);
  if (dense.sizes.empty()) {  // nothing to fit to: the default of a stack
    fit.width = std::log(Stack{}.interval_high);
    return fit;
  }
  fit.width = weighted_quantile(dense.sizes, dense.weights, kIntervalShare);
  if (!experts.sizes.empty() && fit.width > 0) {
    const double width = weighted_quantile(experts.sizes, experts.weights, kIntervalShare);
    fit.moe = std::max(1.0, width / fit.width);
  }
  return fit;
}

}  // namespace

Interval fit_memory_interval(std::span<const PeakResidual> peaks, const std::string& stack) {
  std::vector<PeakResidual> known;
  std::map<std::string_view, int> rows;
  for (const PeakResidual& peak : peaks) {
    if (std::ranges::find(known, peak) != known.end()) continue;
    known.push_back(peak);
    ++rows[peak.source];
  }
  if (known.empty()) return memory_interval(Stack{});
  std::vector<double> ratios, weights;
  for (const PeakResidual& peak : known) {
    ratios.push_back(peak.ratio);
    weights.push_back((peak.stack == stack ? 1 : kOtherStackWeight) / std::sqrt(rows[peak.source]));
  }
  constexpr double kBelow = (1 - kIntervalShare) / 2;
  return {.low = std::min(1.0, weighted_quantile(ratios, weights, kBelow)),
          .high = std::max(1.0, weighted_quantile(ratios, weights, 1 - kBelow))};
}

double weighted_quantile(std::span<const double> values, std::span<const double> weights,
                         double share) {
  assert(values.size() == weights.size() && !values.empty() && "a weight for every value");
  std::vector<std::pair<double, double>> sorted;
  for (std::size_t i = 0; i < values.size(); ++i) sorted.emplace_back(values[i], weights[i]);
  std::ranges::sort(sorted);
  double left = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const auto& [value, weight] : sorted) {
    left -= weight;
    if (left <= 1e-12) return value;
  }
  return sorted.back().first;
}

void add_evidence(const MeasuredRun& run, StackEvidence& evidence) {
  const Job& job = run.job.job;
  const auto& generation = job.cluster.device.generation;
  ++evidence.runs;
  evidence.devices = std::max(evidence.devices, run.plan.devices());
  evidence.sequence_length = std::max(evidence.sequence_length, job.training.sequence_length);
  evidence.ampere |= generation == DeviceGeneration::ampere;
  evidence.hopper |= generation == DeviceGeneration::hopper;
  evidence.blackwell |= generation == DeviceGeneration::blackwell;
  evidence.tensor_parallel |= run.plan.tensor_parallel > 1;
  evidence.pipeline_parallel |= run.plan.pipeline_parallel > 1;
  evidence.context_parallel |= run.plan.context_parallel > 1;
}

StackEvidence evidence_of(std::span<const MeasuredRun> runs, const std::string& stack,
                          const std::string& without_source) {
  StackEvidence evidence;
  for (const MeasuredRun& run : runs) {
    if (run.stack().name != stack || run.source == without_source) continue;
    add_evidence(run, evidence);
  }
  return evidence;
}

std::vector<IntervalFit> fit_intervals(std::span<const MeasuredRun> runs,
                                       std::span<const HeldOutPrediction> predictions) {
  const std::vector<Residual> residuals = residuals_of(runs, predictions);
  std::vector<IntervalFit> fits;
  for (const MeasuredRun& run : runs) {
    const std::string& stack = run.stack().name;
    if (std::ranges::find(fits, stack, &IntervalFit::stack) != fits.end()) continue;
    fits.push_back(fit_without(residuals, stack, {}));
    fits.back().evidence = evidence_of(runs, stack);
  }
  fits.push_back(fit_without(residuals, {}, {}));
  return fits;
}

std::vector<Interval> held_out_intervals(std::span<const MeasuredRun> runs,
                                         std::span<const HeldOutPrediction> predictions) {
  const std::vector<Residual> residuals = residuals_of(runs, predictions);
  std::vector<Interval> intervals;
  for (const Residual& residual : residuals) {
    const IntervalFit fit = fit_without(residuals, residual.stack, residual.source);
    const double width = fit.width * residual.widening * (residual.experts ? fit.moe : 1);
    intervals.push_back({.low = std::exp(-width), .high = std::exp(width)});
  }
  return intervals;
}

Stack with_interval(Stack stack, const IntervalFit& fit) {
  const double width = fit.width * (fit.evidence.runs == 0 ? kUnseenStack : 1);
  stack.interval_low = std::exp(-width);
  stack.interval_high = std::exp(width);
  stack.interval_moe = fit.moe;
  stack.memory_interval_low = fit.memory.low;
  stack.memory_interval_high = fit.memory.high;
  stack.evidence = fit.evidence;
  return stack;
}

}  // namespace trainyard
