#include "scenarios/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "model/calibration/accuracy.h"
#include "model/workload/stack.h"
#include "model/workload/transformer.h"
#include "scenarios/json/json_document.h"

namespace trainyard {
namespace {

using Rows = std::vector<const ValidationRow*>;

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

// Classes of networks by parameters, ascending.
struct SizeClass {
  double below;
  std::string_view name;
};
constexpr std::array kSizeClasses = {SizeClass{1e9, "< 1 B"}, SizeClass{1e10, "1–10 B"},
                                     SizeClass{1e11, "10–100 B"},
                                     SizeClass{std::numeric_limits<double>::infinity(), "≥ 100 B"}};

std::string size_class(double parameters) {
  const auto* one = std::ranges::find_if(
      kSizeClasses, [&](const SizeClass& size) { return parameters < size.below; });
  return std::string(one->name);
}

std::string parallelism_of(const std::optional<PlanRequest>& plan) {
  std::string kinds;
  const auto add = [&kinds](bool used, std::string_view kind) {
    if (used) kinds.append(kinds.empty() ? "" : "+").append(kind);
  };
  if (plan) {
    add(plan->tensor_parallel > 1, "tp");
    add(plan->context_parallel > 1, "cp");
    add(plan->expert_parallel > 1, "ep");
    add(plan->pipeline_parallel > 1, "pp");
  }
  return kinds.empty() ? "dp only" : kinds;
}

// A row with its measurement, before anything is predicted.
ValidationRow measured_row(const std::string& file, const Scenario& scenario) {
  const Job& job = scenario.job;
  ValidationRow row{.file = file,
                    .name = scenario.name,
                    .job = scenario.job_text,
                    .device = job.cluster.device.name,
                    .stack = job.training.stack.name,
                    .size = size_class(parameter_count(job.model, job.training.sequence_length)),
                    .parallelism = parallelism_of(scenario.plan),
                    .devices = job.cluster.devices(),
                    .experts = job.model.experts > 0};
  row.measured = measured_step_time(scenario);
  if (scenario.measured) {
    row.source = scenario.measured->source;
    row.release = scenario.measured->release;
    row.measured_memory = scenario.measured->peak_memory;
  }
  return row;
}

Rows pointers(const std::vector<ValidationRow>& rows) {
  Rows all;
  for (const ValidationRow& row : rows) all.push_back(&row);
  return all;
}

// Rows with the same `key`, in the order of their first row.
std::vector<Rows> split(const std::vector<ValidationRow>& rows, std::string ValidationRow::*key) {
  std::vector<Rows> parts;
  for (const ValidationRow& row : rows) {
    const auto same = [&](const Rows& part) { return part.front()->*key == row.*key; };
    auto part = std::ranges::find_if(parts, same);
    if (part == parts.end()) part = parts.insert(parts.end(), Rows{});
    part->push_back(&row);
  }
  return parts;
}

// The share of measured times that lie in the interval that `interval` gives for the row.
template <typename Interval>
std::optional<double> coverage(std::span<const ValidationRow* const> rows, Interval interval) {
  int known = 0;
  int inside = 0;
  for (const ValidationRow* row : rows) {
    if (!row->error) continue;
    const auto [low, high] = interval(*row);
    if (!low || !high) continue;
    ++known;
    inside += *low <= *row->measured && *row->measured <= *high ? 1 : 0;
  }
  return known == 0 ? std::nullopt : std::optional(static_cast<double>(inside) / known);
}

using Bounds = std::pair<std::optional<Seconds>, std::optional<Seconds>>;
Bounds bounds(const ValidationRow& row) { return {row.low, row.high}; }
Bounds held_out_bounds(const ValidationRow& row) {
  return row.held_out ? Bounds{row.held_out->low, row.held_out->high} : Bounds{};
}

// Summaries of the rows by a key, that with most rows first.
std::vector<SliceSummary> slices(const std::vector<ValidationRow>& rows,
                                 std::string ValidationRow::*key) {
  std::vector<SliceSummary> all;
  for (const Rows& part : split(rows, key)) all.push_back({summary_of(part), part.front()->*key});
  std::ranges::stable_sort(
      all, [](const SliceSummary& a, const SliceSummary& b) { return a.rows > b.rows; });
  return all;
}

std::vector<SliceSummary> slices_by_size(const std::vector<ValidationRow>& rows) {
  const auto rank = [](const SliceSummary& slice) {
    return std::ranges::find(kSizeClasses, slice.name, &SizeClass::name);
  };
  std::vector<SliceSummary> all = slices(rows, &ValidationRow::size);
  std::ranges::sort(all, {}, rank);
  return all;
}

std::vector<PlanGroup> groups_of(const std::vector<ValidationRow>& rows) {
  std::vector<PlanGroup> groups;
  for (const Rows& part : split(rows, &ValidationRow::job)) {
    PlanGroup group;
    std::vector<double> predicted, held_out, measured;
    for (const ValidationRow* row : part) {
      if (!row->error) continue;
      group.plans.push_back(row->name);
      predicted.push_back(row->predicted->value());
      if (row->held_out) held_out.push_back(row->held_out->predicted.value());
      measured.push_back(row->measured->value());
      group.one_release &= row->file == part.front()->file && row->release == part.front()->release;
    }
    if (group.plans.size() < 2) continue;
    group.kendall_tau = kendall_tau(predicted, measured);
    group.regret = regret(predicted, measured);
    if (held_out.size() == measured.size()) {
      group.held_out_kendall_tau = kendall_tau(held_out, measured);
      group.held_out_regret = regret(held_out, measured);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// The note on a priced row; empty: none.
std::string remark_on(const Scenario& scenario) {
  const Training& training = scenario.job.training;
  if (!scenario.measured) return "nothing was measured that the prediction could be held against";
  if (training.release.empty() || names_release(training.release) ||
      training.stack.releases.empty()) {
    return "";
  }
  return fmt::format(
      "its release, {}, does not begin with year and month: priced as {} without a release",
      shown(std::string_view(training.release)), training.stack.name);
}

}  // namespace

ValidationRow priced_row(const std::string& file, const Scenario& scenario,
                         const Estimate& estimate) {
  ValidationRow row = measured_row(file, scenario);
  row.predicted = estimate.step_time;
  row.low = estimate.step_time_low;
  row.high = estimate.step_time_high;
  row.feasible = estimate.feasible;
  row.note = remark_on(scenario);
  if (row.measured) row.error = *row.predicted / *row.measured - 1;
  row.predicted_memory = memory_of(
      estimate, scenario.measured ? scenario.measured->peak_memory_kind : MemoryKind::device);
  if (row.measured_memory) row.memory_error = *row.predicted_memory / *row.measured_memory - 1;
  return row;
}

ValidationRow unpriced_row(const std::string& file, const Scenario& scenario,
                           const std::string& reason) {
  ValidationRow row = measured_row(file, scenario);
  row.note = reason;
  return row;
}

ErrorSummary summary_of(std::span<const ValidationRow* const> rows) {
  ErrorSummary summary{.rows = static_cast<int>(rows.size())};
  std::vector<double> errors, memory_errors, held_out;
  for (const ValidationRow* row : rows) {
    if (row->predicted) ++summary.priced;
    if (row->error) errors.push_back(*row->error);
    if (row->memory_error) memory_errors.push_back(*row->memory_error);
    if (row->held_out) held_out.push_back(row->held_out->error);
  }
  summary.mape = mean_absolute(errors);
  summary.median = median_absolute(errors);
  summary.bias = bias(errors);
  summary.memory_mape = mean_absolute(memory_errors);
  summary.coverage = coverage(rows, bounds);
  summary.held_out_mape = mean_absolute(held_out);
  summary.held_out_median = median_absolute(held_out);
  summary.held_out_coverage = coverage(rows, held_out_bounds);
  return summary;
}

ValidationReport summarise(std::vector<ValidationRow> rows) {
  ValidationReport report;
  report.all = summary_of(pointers(rows));
  for (const Rows& part : split(rows, &ValidationRow::file)) {
    report.files.push_back({summary_of(part), part.front()->file});
  }
  report.by_device = slices(rows, &ValidationRow::device);
  report.by_size = slices_by_size(rows);
  report.by_parallelism = slices(rows, &ValidationRow::parallelism);
  report.groups = groups_of(rows);
  report.rows = std::move(rows);
  return report;
}

std::vector<ValidationField> fields_of(const ValidationRow& row) {
  using Value = decltype(ValidationField::value);
  const auto text = [](const std::string& t) { return t.empty() ? Value() : Value(t); };
  const auto ratio = [](std::optional<double> r) { return r ? Value(*r) : Value(); };
  const auto number = [](const auto& quantity) {
    return quantity ? Value(quantity->value()) : Value();
  };
  const auto left_out = [&row](Seconds HeldOut::*time) {
    return row.held_out ? Value(((*row.held_out).*time).value()) : Value();
  };
  return {{"name", row.name},
          {"file", row.file},
          {"source", text(row.source)},
          {"release", text(row.release)},
          {"device", row.device},
          {"devices", row.devices},
          {"stack", row.stack},
          {"experts", row.experts},
          {"size", row.size},
          {"parallelism", row.parallelism},
          {"predicted_step_time_s", number(row.predicted)},
          {"step_time_low_s", number(row.low)},
          {"step_time_high_s", number(row.high)},
          {"measured_step_time_s", number(row.measured)},
          {"error", ratio(row.error)},
          {"predicted_peak_memory_bytes", number(row.predicted_memory)},
          {"measured_peak_memory_bytes", number(row.measured_memory)},
          {"memory_error", ratio(row.memory_error)},
          {"feasible", row.predicted ? Value(row.feasible) : Value()},
          {"note", text(row.note)},
          {"held_out_step_time_s", left_out(&HeldOut::predicted), true},
          {"held_out_step_time_low_s", left_out(&HeldOut::low), true},
          {"held_out_step_time_high_s", left_out(&HeldOut::high), true},
          {"held_out_error", row.held_out ? Value(row.held_out->error) : Value(), true}};
}

}  // namespace trainyard
