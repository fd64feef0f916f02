#include "scenarios/priced_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "model/cost/estimate.h"
#include "planner/passes/auto_schedule.h"

namespace trainyard {
namespace {

HeldOut held_out_of(const HeldOutPrediction& prediction, Interval interval) {
  return {.predicted = prediction.predicted,
          .low = prediction.predicted * interval.low,
          .high = prediction.predicted * interval.high,
          .error = prediction.predicted / prediction.measured - 1};
}

std::vector<PeakResidual> peaks_of(const std::vector<PricedRun>& runs) {
  std::vector<PeakResidual> peaks;
  for (const PricedRun& run : runs) {
    if (!run.run || !run.row.memory_error) continue;
    peaks.push_back({run.run->source, run.run->stack().name, 1 / (1 + *run.row.memory_error)});
  }
  return peaks;
}

}  // namespace

PricedRun priced_run(const std::string& file, const Scenario& scenario) {
  if (!scenario.plan) return {unpriced_row(file, scenario, "it has no plan"), {}};
  if (const auto like = check_like_nodes(scenario); !like) {
    return {unpriced_row(file, scenario, like.error().message), {}};
  }
  PreparedJob job = prepare(scenario.job);
  auto legal = complete_plan(job, *scenario.plan);
  if (!legal) {
    const Error& error = legal.error();
    return {unpriced_row(file, scenario, fmt::format("{}: {}", error.where, error.message)), {}};
  }
  Plan plan = *std::move(legal);
  PricedRun priced{priced_row(file, scenario, estimate(job, plan)), {}};
  if (priced.row.measured) {
    priced.run = MeasuredRun{scenario.name, std::filesystem::path(file).stem().string(),
                             std::move(job), std::move(plan), *priced.row.measured};
  }
  return priced;
}

std::vector<IntervalFit> hold_out_sources(std::vector<PricedRun>& runs,
                                          const std::function<void(double)>& progress) {
  std::vector<MeasuredRun> measured;
  for (const PricedRun& run : runs) {
    if (run.run) measured.push_back(*run.run);
  }
  const std::vector<HeldOutPrediction> predictions = leave_one_source_out(measured, progress);
  const std::vector<Interval> intervals = held_out_intervals(measured, predictions);
  std::size_t next = 0;
  for (PricedRun& run : runs) {
    if (!run.run) continue;
    run.row.held_out = held_out_of(predictions[next], intervals[next]);
    ++next;
  }
  std::vector<IntervalFit> fits = fit_intervals(measured, predictions);
  const std::vector<PeakResidual> peaks = peaks_of(runs);
  for (IntervalFit& fit : fits) fit.memory = fit_memory_interval(peaks, fit.stack);
  return fits;
}

std::vector<ValidationRow> rows_of(std::vector<PricedRun> runs) {
  std::vector<ValidationRow> rows;
  rows.reserve(runs.size());
  for (PricedRun& run : runs) rows.push_back(std::move(run.row));
  return rows;
}

}  // namespace trainyard
