#include "scenarios/validation.h"

#include <algorithm>
#include <map>

#include "model/calibration/accuracy.h"

namespace trainyard {
namespace {

Bytes memory_of(const Estimate& estimate, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::allocated:
      return estimate.peak_allocated;
    case MemoryKind::reserved:
      return estimate.peak_reserved;
    case MemoryKind::device:
      break;
  }
  return estimate.peak_memory;
}

// What a row has before anything is predicted.
ValidationRow measured_row(const std::string& file, const Scenario& scenario) {
  ValidationRow row{.file = file, .name = scenario.name, .job = scenario.job_text};
  row.measured = measured_step_time(scenario);
  if (scenario.measured) row.measured_memory = scenario.measured->peak_memory;
  return row;
}

// Names in the order of their first row.
template <typename Key>
std::vector<std::string> distinct(const std::vector<ValidationRow>& rows, Key key) {
  std::vector<std::string> names;
  for (const ValidationRow& row : rows) {
    if (std::ranges::find(names, row.*key) == names.end()) names.push_back(row.*key);
  }
  return names;
}

FileSummary summary_of(const std::string& file, const std::vector<ValidationRow>& rows) {
  FileSummary summary{.file = file};
  std::vector<double> errors;
  for (const ValidationRow& row : rows) {
    if (row.file != file) continue;
    ++summary.rows;
    if (row.predicted) ++summary.priced;
    if (row.error) errors.push_back(*row.error);
  }
  summary.mape = mean_absolute(errors);
  summary.median = median_absolute(errors);
  return summary;
}

std::vector<PlanGroup> groups_of(const std::vector<ValidationRow>& rows) {
  std::vector<PlanGroup> groups;
  for (const std::string& job : distinct(rows, &ValidationRow::job)) {
    PlanGroup group;
    std::vector<double> predicted, measured;
    for (const ValidationRow& row : rows) {
      if (row.job != job || !row.error) continue;
      group.plans.push_back(row.name);
      predicted.push_back(row.predicted->value());
      measured.push_back(row.measured->value());
    }
    if (group.plans.size() < 2) continue;
    group.kendall_tau = kendall_tau(predicted, measured);
    group.regret = regret(predicted, measured);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

ValidationRow priced_row(const std::string& file, const Scenario& scenario,
                         const Estimate& estimate) {
  ValidationRow row = measured_row(file, scenario);
  row.predicted = estimate.step_time;
  row.low = estimate.step_time_low;
  row.high = estimate.step_time_high;
  row.feasible = estimate.feasible;
  if (row.measured) row.error = *row.predicted / *row.measured - 1;
  if (row.measured_memory) {
    row.predicted_memory = memory_of(estimate, scenario.measured->peak_memory_kind);
    row.memory_error = *row.predicted_memory / *row.measured_memory - 1;
  }
  return row;
}

ValidationRow unpriced_row(const std::string& file, const Scenario& scenario,
                           const std::string& reason) {
  ValidationRow row = measured_row(file, scenario);
  row.note = reason;
  return row;
}

ValidationReport summarise(std::vector<ValidationRow> rows) {
  ValidationReport report;
  std::vector<double> errors, memory_errors;
  for (const ValidationRow& row : rows) {
    if (row.error) errors.push_back(*row.error);
    if (row.memory_error) memory_errors.push_back(*row.memory_error);
  }
  report.mape = mean_absolute(errors);
  report.median = median_absolute(errors);
  report.memory_mape = mean_absolute(memory_errors);
  for (const std::string& file : distinct(rows, &ValidationRow::file)) {
    report.files.push_back(summary_of(file, rows));
  }
  report.groups = groups_of(rows);
  report.rows = std::move(rows);
  return report;
}

}  // namespace trainyard
