#include "cli/plan/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "cli/interrupt.h"
#include "cli/plan/csv.h"
#include "cli/plan/table.h"
#include "cli/planner_run.h"
#include "cli/progress.h"
#include "cli/text/csv.h"
#include "cli/text/estimate.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/style.h"
#include "cli/text/layout/table.h"
#include "cli/text/plan.h"
#include "model/cost/estimate.h"
#include "model/cost/reliability_settings.h"
#include "model/units.h"
#include "planner/findings/capacity.h"
#include "scenarios/write/plan.h"

namespace trainyard {
namespace {

using Points = std::vector<CapacityPoint>;

struct SizeColumn {
  std::string_view head;
  Align align;
  std::string (*cell)(const Job& job);
  bool is_always_shown = false;  // otherwise shown only where it varies
};
constexpr SizeColumn kSizeColumns[] = {
    {"model", Align::left, [](const Job& job) { return job.model.name; }},
    {"batch", Align::right, [](const Job& job) { return count(job.training.global_batch); }},
    {"sequence", Align::right, [](const Job& job) { return count(job.training.sequence_length); }},
    {"devices", Align::right, [](const Job& job) { return count(job.cluster.devices()); }, true},
};

// Columns that tell the points apart.
std::vector<PlanColumn> labels_of(const Points& points, const std::vector<SizeColumn>& sizes) {
  std::vector<PlanColumn> labels;
  labels.reserve(sizes.size());
  for (const SizeColumn& size : sizes) {
    PlanColumn label{{std::string(size.head), "", size.align}, {}};
    for (const CapacityPoint& point : points) label.cells.push_back(size.cell(point.job));
    labels.push_back(std::move(label));
  }
  return labels;
}

std::vector<SizeColumn> shown_sizes(const Points& points) {
  std::vector<SizeColumn> columns;
  for (const SizeColumn& column : kSizeColumns) {
    std::set<std::string> values;
    for (const CapacityPoint& point : points) values.insert(column.cell(point.job));
    if (column.is_always_shown || values.size() > 1) columns.push_back(column);
  }
  return columns;
}

bool has_run(const Points& points) { return points.front().job.training.tokens > 0; }

std::string run_cell(const CapacityPoint& point) {
  return point.run ? number(*point.run / kDay) : "–";
}

bool has_cost(const Points& points) {
  return std::any_of(points.begin(), points.end(),
                     [](const CapacityPoint& point) { return point.run_cost.has_value(); });
}

std::string run_cost_cell(const CapacityPoint& point) {
  return point.run_cost ? short_scale(point.run_cost->value()) : "–";
}

// A result of a size's best plan; "–": there is none.
struct SizeResult {
  Column column;
  std::string (*cell)(const Candidate& best);
};
const SizeResult kSizeResults[] = {
    {{"step", "s"},
     [](const Candidate& best) { return fmt::format("{:.3f}", best.estimate.step_time.value()); }},
    {{"tokens", "/s"},
     [](const Candidate& best) { return number(best.estimate.tokens_per_second); }},
    {{"tokens", "/s/device"},
     [](const Candidate& best) {
       return number(best.estimate.tokens_per_second / best.plan.devices());
     }},
    {{"MFU", "%"}, [](const Candidate& best) { return percent(best.estimate.mfu); }},
    {{"memory", "GiB"}, [](const Candidate& best) {
       return fmt::format("{:.1f}", best.estimate.peak_memory.value() / kGiB);
     }}};

// Whether a size meets the deadline; "–": unknown, for a stopped search may have missed a faster
// plan.
std::string in_time_cell(const CapacityPoint& point, Seconds deadline) {
  if (point.in_time) return "yes";
  const bool may_be = !point.optimal && (!point.run || *point.run * (1 - point.gap) <= deadline);
  return may_be ? "–" : "no";
}

// Whether the plan is the best, or the search was stopped.
std::string verdict_of(const CapacityPoint& point, const Style& style) {
  if (point.optimal) return point.best ? "" : style.bad("no plan fits");
  if (!point.best) return style.bad("stopped: none found");
  return style.bad(fmt::format("stopped: ≤ {} % off", percent(point.gap)));
}

bool has_verdict(const Points& points) {
  return std::any_of(points.begin(), points.end(), [](const CapacityPoint& point) {
    return !point.best.has_value() || !point.optimal;
  });
}

std::string table_of(const Points& points, std::optional<Seconds> deadline, const PlanOrder& order,
                     const Style& style) {
  std::vector<PlanColumn> columns = labels_of(points, shown_sizes(points));
  const auto add = [&](Column column, const auto& cell) {
    PlanColumn result{std::move(column), {}, ColumnOf::results};
    for (const CapacityPoint& point : points) result.cells.push_back(cell(point));
    columns.push_back(std::move(result));
  };
  for (const SizeResult& result : kSizeResults) {
    add(result.column, [&result](const CapacityPoint& point) {
      return point.best ? result.cell(*point.best) : "–";
    });
  }
  for (ValueColumn& value : value_columns(order)) {
    add(std::move(value.column), [&](const CapacityPoint& point) {
      return point.best ? value.cell(prepare(point.job), order, *point.best) : "–";
    });
  }
  if (has_run(points)) add({"run", "days"}, run_cell);
  if (has_cost(points)) add({"run", "USD"}, run_cost_cell);
  if (deadline) {
    add({"in time", "", Align::left},
        [&deadline](const CapacityPoint& point) { return in_time_cell(point, *deadline); });
  }
  if (has_verdict(points)) {
    add({"", "", Align::left},
        [&style](const CapacityPoint& point) { return verdict_of(point, style); });
  }
  return page_wide(std::move(columns), style);
}

// The table of the plans' choices, for the sizes that have a plan.
std::string choices_of(const Points& points, const Style& style) {
  Points fitting;
  std::ranges::copy_if(points, std::back_inserter(fitting),
                       [](const CapacityPoint& point) { return point.best.has_value(); });
  if (fitting.empty()) return "";
  std::vector<const Plan*> plans;
  plans.reserve(fitting.size());
  for (const CapacityPoint& point : fitting) plans.push_back(&point.best->plan);
  return "\n" + std::string(kChoicesHeading) +
         choices_table(labels_of(fitting, shown_sizes(points)), plans, style);
}

std::string size_words(const CapacityPoint& point) {
  return fmt::format("{} of {} on {}, {} a step", point.job.model.name,
                     counted(point.job.training.sequence_length, "token"),
                     counted(point.job.cluster.devices(), "device"),
                     counted(point.job.training.global_batch, "sequence"));
}

bool is_stopped(const CapacityPoint& point) { return !point.optimal; }

// Qualifies a "no" where searches were stopped.
std::string_view as_far_as_searched(const Points& points) {
  return std::ranges::any_of(points, is_stopped) ? ", as far as they were searched" : "";
}

// Names the searches that ended early, and what they leave open.
std::string stopped_words(const Points& points) {
  const auto stopped = std::ranges::count_if(points, is_stopped);
  if (stopped == 0) return "";
  const auto without = std::ranges::count_if(
      points, [](const CapacityPoint& point) { return is_stopped(point) && !point.best; });
  const std::string open =
      without == 0
          ? ""
          : fmt::format(" Of {} nothing was found: they may fit all the same.", count(without));
  return fmt::format("{} of {} ended early, as their rows say, with their best so far.{}",
                     count(stopped), counted(std::ssize(points), "search", "searches"), open);
}

std::string deadline_words(const Points& points, Seconds deadline) {
  const std::string within = duration(deadline);
  const CapacityPoint* fewest = fewest_devices(points);
  if (fewest == nullptr) {
    return fmt::format("none of {} sizes is done within {}{}.",
                       was_interrupted() ? "the searched" : "these", within,
                       as_far_as_searched(points));
  }
  const auto& cost = fewest->run_cost;
  return fmt::format("{}: {} tokens in {}{}, within {}, failures and checkpoints included: {}.",
                     count(fewest->job.cluster.devices()), short_scale(fewest->job.training.tokens),
                     duration(*fewest->run),
                     cost ? fmt::format(" for {} USD", short_scale(cost->value())) : "", within,
                     plan_line(fewest->best->plan));
}

std::string answers(const Points& points, const CapacitySpace& sizes, const Style& style) {
  std::string text;
  if (sizes.deadline) {
    text += paragraph("fewest devices", deadline_words(points, *sizes.deadline), style);
  }
  const Wanted asked = wanted(sizes);
  const std::string none =
      fmt::format("none of them {}{}.", asked == Wanted::in_time ? "is in time" : "fits",
                  as_far_as_searched(points));
  const auto add = [&](std::string_view label, const CapacityPoint* point) {
    const std::string words = point == nullptr
                                  ? none
                                  : fmt::format("{}{}: {}.", size_words(*point),
                                                asked == Wanted::in_time ? ", in time" : "",
                                                plan_line(point->best->plan));
    text += paragraph(label, words, style);
  };
  if (sizes.models.size() > 1) add("largest model", largest_model(points, asked));
  if (sizes.sequence_length.size() > 1) add("longest", longest_sequence(points, asked));
  const std::string stopped = stopped_words(points);
  if (!stopped.empty()) text += paragraph("stopped", stopped, style);
  const std::int64_t left = count_of(sizes) - static_cast<std::int64_t>(points.size());
  if (left > 0) text += paragraph("not looked at", counted(left, "size") + ".", style);
  return text;
}

std::string report(const Question& question, const Points& points, const PlanOrder& order,
                   const Style& style) {
  const CapacitySpace& sizes = question.scenario.space;
  return fmt::format("{}\nthe best plan of every size by {}\n", sizes_heading(question, style),
                     order_words(order)) +
         table_of(points, sizes.deadline, order, style) + choices_of(points, style) + "\n" +
         answers(points, sizes, style);
}

CsvRow row_of(const Question& question, const CapacityPoint& point, const PlanOrder& order) {
  const bool timed = question.scenario.space.deadline.has_value();
  const auto of_best = [&point](double (*value)(const Estimate&)) {
    return point.best ? csv_number(value(point.best->estimate)) : "";
  };
  CsvRow row = {
      {"name", question.scenario.name},
      {"model", point.job.model.name},
      {"devices", fmt::format("{}", point.job.cluster.devices())},
      {"global_batch", fmt::format("{}", point.job.training.global_batch)},
      {"sequence_length", fmt::format("{}", point.job.training.sequence_length)},
      {"fits", point.best ? "true" : "false"},
      {"optimal", point.optimal ? "true" : "false"},
      {"gap", csv_number(point.gap)},
      {"step_time_s", of_best([](const Estimate& e) { return e.step_time.value(); })},
      {"tokens_per_second", of_best([](const Estimate& e) { return e.tokens_per_second; })},
      {"mfu", of_best([](const Estimate& e) { return e.mfu; })},
      {"peak_memory_bytes", of_best([](const Estimate& e) { return e.peak_memory.value(); })},
      {"run_time_s", point.run ? csv_number(point.run->value()) : ""},
      {"run_cost_usd", csv_number(point.run_cost)},
      {"in_time", timed ? (point.in_time ? "true" : "false") : ""},
      {"plan", point.best ? plan_line(point.best->plan) : ""},
      {"objective", std::string(objective_name(order.objective))},
      {"cost_per_step_usd", point.best ? csv_number(point.best->estimate.cost_per_step) : ""},
      {"energy_per_step_joule",
       point.best ? csv_number(point.best->estimate.energy_per_step) : ""}};
  add_values(prepare(point.job), order, point.best ? &*point.best : nullptr, row);
  return row;
}

std::string csv_of(const Question& question, const Points& points, const PlanOrder& order) {
  std::vector<CsvRow> rows;
  rows.reserve(points.size());
  for (const CapacityPoint& point : points) rows.push_back(row_of(question, point, order));
  return csv_text(rows);
}

// The exit status. An answer left open is not a "no"; with nothing found it is no answer at all.
int status_of(const Points& points, const CapacitySpace& sizes) {
  const bool open = was_interrupted() || std::ranges::any_of(points, is_stopped);
  const bool fits = largest_model(points, Wanted::fits) != nullptr;
  if (open) return fits ? kDone : kInterrupted;
  const bool yes = sizes.deadline ? fewest_devices(points) != nullptr : fits;
  return yes ? kDone : kAnswerIsNo;
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
  const int status = status_of(points, question.scenario.space);
  if (status == kInterrupted && std::ranges::all_of(points, is_stopped)) {
    return fail(
        was_interrupted() ? nothing_before_interruption(file) : nothing_before_time_limit(file),
        status);
  }
  const PlanOrder order{options.objective, std::nullopt, options.valuation};
  switch (format) {
    case Format::json:
      return print(capacity_json(question.scenario, points, options.objective), status);
    case Format::csv:
      return print(csv_of(question, points, order), status);
    case Format::text:
      break;
  }
  return print(report(question, points, order, style_for(stdout)), status);
}

}  // namespace trainyard
