// trainyard report RESULTS.sqlite -o FILE
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>

#include "cli/command.h"
#include "cli/text/csv.h"
#include "scenarios/json/output_file.h"
#include "scenarios/sweep/report/html.h"
#include "scenarios/sweep/report/json.h"
#include "scenarios/sweep/results/row_json.h"

namespace trainyard {
namespace {

enum class ReportFormat { html, csv, json };
const std::map<std::string, ReportFormat> kReportFormats = {
    {"html", ReportFormat::html}, {"csv", ReportFormat::csv}, {"json", ReportFormat::json}};

struct ReportOptions {
  std::filesystem::path results, out;
  ReportFormat format = ReportFormat::html;
};

std::string number_or_empty(double value) { return std::isnan(value) ? "" : csv_number(value); }

void add_baseline(const std::string& name, const std::optional<BaselineFigures>& baseline,
                  CsvRow& row) {
  row.emplace_back(name + "_plan", baseline ? baseline->plan : "");
  row.emplace_back(name + "_fits", baseline ? (baseline->fits ? "true" : "false") : "");
  row.emplace_back(name + "_step_time_s", baseline ? csv_number(baseline->step_time) : "");
  row.emplace_back(name + "_peak_memory_bytes", baseline ? csv_number(baseline->peak_memory) : "");
}

CsvRow row_of_point(const Sweep& sweep, const ReportedPoint& point) {
  const PointRow& row = point.row;
  CsvRow cells = {{"point", fmt::format("{}", row.point)},
                  {"status", std::string(name_of(row.status))},
                  {"note", row.note}};
  std::map<std::string, std::string> own;
  for (auto& [key, value] : overrides_of(row)) own.emplace(key, value);
  for (const SweepColumn& column : sweep.columns) cells.emplace_back(column.name, own[column.name]);
  cells.emplace_back("strategy", point.strategy);
  cells.emplace_back("plan", point.plan);
  for (std::size_t i = 0; i < kFigures; ++i) {
    cells.emplace_back(std::string(kFigureNames[i]), number_or_empty(row.figures[i]));
  }
  add_baseline("plain_ddp", point.plain, cells);
  add_baseline("rule_of_thumb", point.rule, cells);
  return cells;
}

// Writes row by row: a million points do not fit into every machine's memory.
Expected<void> write_csv(SweepReport& report, OutputFile& out) {
  bool first = true;
  return report.results().each({}, [&](const PointRow& row) {
    const std::string text = csv_text({row_of_point(report.sweep(), report.describe(row))});
    out.write(first ? text : std::string_view(text).substr(text.find('\n') + 1));
    first = false;
    return true;
  });
}

Expected<void> write(SweepReport& report, ReportFormat format, OutputFile& out) {
  switch (format) {
    case ReportFormat::csv:
      return write_csv(report, out);
    case ReportFormat::json:
      return write_report_json(report, out);
    case ReportFormat::html:
      break;
  }
  return write_report_html(report, out);
}

int run(const ReportOptions& options) {
  auto report = SweepReport::open(options.results);
  if (!report) return fail(report.error());
  if (const auto writable = check_output(options.out, {options.results}); !writable) {
    return fail(writable.error());
  }
  auto out = OutputFile::open(options.out);
  if (!out) return fail(out.error(), kMachineFailed);
  if (const auto written = write(**report, options.format, *out); !written) {
    return fail({options.results.string(), written.error().message});  // the results cannot be read
  }
  const auto finished = out->finish();
  return finished ? kDone : fail(finished.error(), kMachineFailed);
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "report", "the results of a sweep as a page: tables, charts, baselines, assumptions");
  auto options = std::make_shared<ReportOptions>();
  command->add_option("RESULTS.sqlite", options->results, "what a sweep wrote")->required();
  command->add_option("-o,--out", options->out, "the page, or the table")
      ->required()
      ->check(names_a_file)
      ->type_name("FILE");
  command
      ->add_option("--format", options->format,
                   "html: one page that needs nothing else; csv, json: every point")
      ->transform(one_of(kReportFormats))
      ->option_text("html|csv|json");
  add_example(*command, "trainyard report results.sqlite -o report.html");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
