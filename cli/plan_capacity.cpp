#include "cli/plan_capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/csv.h"
#include "cli/estimate_text.h"
#include "cli/plan_search.h"
#include "cli/plan_table.h"
#include "cli/plan_text.h"
#include "cli/progress.h"
#include "cli/style.h"
#include "cli/table.h"
#include "cli/text.h"
#include "model/cost/estimate.h"
#include "model/cost/money.h"
#include "model/cost/reliability_settings.h"
#include "planner/capacity.h"
#include "scenarios/output.h"

namespace trainyard {
namespace {

using Points = std::vector<CapacityPoint>;

// The columns of a size, those only that vary.
struct SizeColumn {
  std::string_view head;
  Align align;
  std::string (*cell)(const Job& job);
};
constexpr SizeColumn kSizeColumns[] = {
    {"model", Align::left, [](const Job& job) { return job.model.name; }},
    {"batch", Align::right, [](const Job& job) { return count(job.training.global_batch); }},
    {"sequence", Align::right, [](const Job& job) { return count(job.training.sequence_length); }},
};

std::vector<SizeColumn> varying_columns(const Points& points) {
  std::vector<SizeColumn> columns;
  for (const SizeColumn& column : kSizeColumns) {
    std::set<std::string> values;
    for (const CapacityPoint& point : points) values.insert(column.cell(point.job));
    if (values.size() > 1) columns.push_back(column);
  }
  return columns;
}

bool has_run(const Points& points) { return points.front().job.training.tokens > 0; }

std::string run_cell(const CapacityPoint& point) {
  return point.run ? number(*point.run / kDay) : "–";
}

// Of the whole run, failures and checkpoints included.
std::optional<Dollars> run_cost(const CapacityPoint& point) {
  return point.run ? cost_of(point.job.cluster, *point.run) : std::nullopt;
}

bool has_cost(const Points& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const CapacityPoint& point) { return run_cost(point).has_value(); });
}

std::string run_cost_cell(const CapacityPoint& point) {
  const auto cost = run_cost(point);
  return cost ? short_scale(cost->value()) : "–";
}

std::vector<std::string> cells_of(const CapacityPoint& point) {
  if (!point.best) return {"–", "–", "–", "–", "–"};
  const Estimate& estimate = point.best->estimate;
  return {fmt::format("{:.3f}", estimate.step_time.value()), number(estimate.tokens_per_second),
          number(estimate.tokens_per_second / point.best->plan.devices()), percent(estimate.mfu),
          fmt::format("{:.1f}", estimate.peak_memory.value() / kGib)};
}

bool some_do_not_fit(const Points& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const CapacityPoint& point) { return !point.best.has_value(); });
}

std::vector<Column> columns_of(const Points& points, const std::vector<SizeColumn>& sizes,
                               bool has_deadline) {
  constexpr std::size_t kOthers = 10;
  std::vector<Column> columns;
  columns.reserve(sizes.size() + kOthers);
  for (const SizeColumn& size : sizes) columns.push_back({std::string(size.head), "", size.align});
  for (const Column& column :
       {Column{"devices"}, Column{"step", "s"}, Column{"tokens", "/s"},
        Column{"tokens", "/s/device"}, Column{"MFU", "%"}, Column{"memory", "GiB"}}) {
    columns.push_back(column);
  }
  if (has_run(points)) columns.push_back({"run", "days"});
  if (has_cost(points)) columns.push_back({"run", "USD"});
  if (has_deadline) columns.push_back({"in time", "", Align::left});
  if (some_do_not_fit(points)) columns.push_back({"", "", Align::left});
  return columns;
}

std::string yes_or_no(bool is_so) { return is_so ? "yes" : "no"; }

std::string verdict_of(const CapacityPoint& point, const Style& style) {
  return point.best ? "" : style.bad("no plan fits");
}

std::string table_of(const Points& points, bool has_deadline, const Style& style) {
  const std::vector<SizeColumn> sizes = varying_columns(points);
  std::vector<Column> columns = columns_of(points, sizes, has_deadline);
  const std::size_t width = columns.size();
  const bool run = has_run(points), cost = has_cost(points), lacks = some_do_not_fit(points);
  Table table(std::move(columns));
  for (const CapacityPoint& point : points) {
    std::vector<std::string> row;
    row.reserve(width);
    for (const SizeColumn& size : sizes) row.push_back(size.cell(point.job));
    row.push_back(count(point.job.cluster.devices()));
    for (std::string& cell : cells_of(point)) row.push_back(std::move(cell));
    if (run) row.push_back(run_cell(point));
    if (cost) row.push_back(run_cost_cell(point));
    if (has_deadline) row.push_back(yes_or_no(point.in_time));
    if (lacks) row.push_back(verdict_of(point, style));
    table.add_row(std::move(row));
  }
  return table.render(style);
}

// What the plans of these rows are, of those that have one.
std::string choices_of(const Points& points, const Style& style) {
  std::vector<const Plan*> plans;
  std::vector<PlanColumn> labels;
  const std::vector<SizeColumn> sizes = varying_columns(points);
  labels.reserve(sizes.size() + 1);
  for (const SizeColumn& size : sizes) labels.push_back({{std::string(size.head), "", size.align}});
  labels.push_back({{"devices"}});
  for (const CapacityPoint& point : points) {
    if (!point.best) continue;
    plans.push_back(&point.best->plan);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      labels[i].cells.push_back(sizes[i].cell(point.job));
    }
    labels.back().cells.push_back(count(point.job.cluster.devices()));
  }
  return plans.empty() ? ""
                       : "\nthe degrees and choices of each\n" +
                             choices_table(std::move(labels), plans, style);
}

std::string size_words(const CapacityPoint& point) {
  return fmt::format("{} of {} tokens on {} devices, {} sequences a step", point.job.model.name,
                     count(point.job.training.sequence_length), count(point.job.cluster.devices()),
                     count(point.job.training.global_batch));
}

std::string deadline_words(const Points& points, Seconds deadline) {
  const std::string within = fmt::format("{} days", number(deadline / kDay));
  const CapacityPoint* fewest = fewest_devices(points);
  if (fewest == nullptr) {
    return fmt::format("none of {} sizes is done within {}.",
                       was_interrupted() ? "the searched" : "these", within);
  }
  const auto cost = run_cost(*fewest);
  return fmt::format(
      "{}: {} tokens in {} days{}, within {}, failures and checkpoints included: {}.",
      count(fewest->job.cluster.devices()), short_scale(fewest->job.training.tokens),
      run_cell(*fewest), cost ? fmt::format(" for {} USD", short_scale(cost->value())) : "", within,
      plan_line(fewest->best->plan));
}

std::string answers(const Points& points, const CapacitySpace& sizes, const Style& style) {
  std::string text;
  if (sizes.deadline) {
    text += paragraph("fewest devices", deadline_words(points, *sizes.deadline), style);
  }
  const auto add = [&](std::string_view label, const CapacityPoint* point) {
    const std::string words =
        point == nullptr ? "none of them fits."
                         : fmt::format("{}: {}.", size_words(*point), plan_line(point->best->plan));
    text += paragraph(label, words, style);
  };
  if (sizes.models.size() > 1) add("largest model", largest_model(points));
  if (sizes.sequence_length.size() > 1) add("longest", longest_sequence(points));
  const auto open = std::count_if(points.begin(), points.end(),
                                  [](const CapacityPoint& point) { return !point.optimal; });
  if (open > 0) {
    text +=
        paragraph("stopped",
                  fmt::format("{} of these searches early: their best plans so far.", open), style);
  }
  const std::int64_t left = count_of(sizes) - static_cast<std::int64_t>(points.size());
  if (left > 0) text += paragraph("not looked at", fmt::format("{} sizes.", left), style);
  return text;
}

std::string report(const Question& question, const Points& points, const Style& style) {
  const CapacitySpace& sizes = question.scenario.space;
  return sizes_heading(question, style) + "\nthe best plan of every size\n" +
         table_of(points, sizes.deadline.has_value(), style) + choices_of(points, style) + "\n" +
         answers(points, sizes, style);
}

CsvRow row_of(const Question& question, const CapacityPoint& point) {
  const auto of_best = [&point](double (*value)(const Estimate&)) {
    return point.best ? csv_number(value(point.best->estimate)) : "";
  };
  return {{"name", question.scenario.name},
          {"model", point.job.model.name},
          {"devices", fmt::format("{}", point.job.cluster.devices())},
          {"global_batch", fmt::format("{}", point.job.training.global_batch)},
          {"sequence_length", fmt::format("{}", point.job.training.sequence_length)},
          {"fits", point.best ? "true" : "false"},
          {"optimal", point.optimal ? "true" : "false"},
          {"step_time_s", of_best([](const Estimate& e) { return e.step_time.value(); })},
          {"tokens_per_second", of_best([](const Estimate& e) { return e.tokens_per_second; })},
          {"mfu", of_best([](const Estimate& e) { return e.mfu; })},
          {"peak_memory_bytes", of_best([](const Estimate& e) { return e.peak_memory.value(); })},
          {"run_time_s", point.run ? csv_number(point.run->value()) : ""},
          {"run_cost_usd", run_cost(point) ? csv_number(run_cost(point)->value()) : ""},
          {"in_time", point.in_time ? "true" : "false"},
          {"plan", point.best ? plan_line(point.best->plan) : ""}};
}

std::string csv_of(const Question& question, const Points& points) {
  std::vector<CsvRow> rows;
  rows.reserve(points.size());
  for (const CapacityPoint& point : points) rows.push_back(row_of(question, point));
  return csv_text(rows);
}

bool says_yes(const Points& points, const CapacitySpace& sizes) {
  if (sizes.deadline) return fewest_devices(points) != nullptr;
  return largest_model(points) != nullptr;
}

Points search_sizes(const Question& question, SearchOptions options) {
  const InterruptGuard guard;
  Progress progress("searching");
  options.progress = [&progress](double fraction) { progress.show(fraction); };
  options.interrupted = interrupt_flag();
  return plan_capacity(question.scenario.job, question.scenario.space, options, analytic_evaluator);
}

}  // namespace

int answer_for_sizes(const std::filesystem::path& file, const Question& question,
                     const SearchOptions& options, Format format) {
  const Points points = search_sizes(question, options);
  const bool found = std::any_of(points.begin(), points.end(),
                                 [](const CapacityPoint& point) { return point.best.has_value(); });
  if (was_interrupted() && !found) return fail(nothing_before_interruption(file), kInterrupted);
  const bool answered = says_yes(points, question.scenario.space) || was_interrupted();
  const int status = answered ? kDone : kAnswerIsNo;
  switch (format) {
    case Format::json:
      return print(capacity_json(question.scenario, points), status);
    case Format::csv:
      return print(csv_of(question, points), status);
    case Format::text:
      break;
  }
  return print(report(question, points, style_for(stdout)), status);
}

}  // namespace trainyard
