// trainyard validate FILE…
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/text/csv.h"
#include "cli/text/validation.h"
#include "cli/text/validation_plot.h"
#include "scenarios/json/output_file.h"
#include "scenarios/priced_run.h"
#include "scenarios/validation.h"
#include "scenarios/write/validation.h"

namespace trainyard {
namespace {

struct ValidateOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path plot;
  Format format = Format::text;
  bool every_row = false;
  bool leave_one_source_out = false;
};

// Nothing is priced before all files have been read.
Expected<std::vector<PricedRun>> priced_runs(const std::vector<std::filesystem::path>& files) {
  std::vector<std::pair<std::string, Scenario>> scenarios;
  for (const std::filesystem::path& file : files) {
    auto read = read_scenarios(file);
    if (!read) {
      return tl::unexpected(std::move(read.error()));
    }
    for (Scenario& scenario : *read) {
      scenarios.emplace_back(file.string(), std::move(scenario));
    }
  }
  Progress progress("validating");
  std::vector<PricedRun> runs;
  for (const auto& [file, scenario] : scenarios) {
    runs.push_back(priced_run(file, scenario));
    progress.show(static_cast<double>(runs.size()) / static_cast<double>(scenarios.size()));
  }
  return runs;
}

bool have_two_sources(const std::vector<PricedRun>& runs) {
  const auto measured = [](const PricedRun& run) { return run.run.has_value(); };
  const auto first = std::ranges::find_if(runs, measured);
  return std::any_of(first, runs.end(), [&](const PricedRun& run) {
    return run.run && run.run->source != first->run->source;
  });
}

Expected<ValidationReport> report_of(const ValidateOptions& options) {
  auto runs = priced_runs(options.files);
  if (!runs) {
    return tl::unexpected(std::move(runs.error()));
  }
  std::vector<IntervalFit> intervals;
  if (options.leave_one_source_out) {
    if (!have_two_sources(*runs)) {
      return tl::unexpected(Error{"--leave-one-source-out",
                                  "found measured step times of one file or none; allowed: of two "
                                  "files or more"});
    }
    Progress progress("leaving sources out");
    intervals = hold_out_sources(*runs, [&](double fraction) { progress.show(fraction); });
  }
  ValidationReport report = summarise(rows_of(*std::move(runs)));
  report.intervals = std::move(intervals);
  return report;
}

std::string cell_of(std::monostate) { return ""; }
std::string cell_of(bool value) { return value ? "true" : "false"; }
std::string cell_of(int value) { return std::to_string(value); }
std::string cell_of(double value) { return csv_number(value); }
std::string cell_of(const std::string& value) { return value; }

CsvRow row_of_run(const ValidationRow& row) {
  CsvRow cells;
  for (const ValidationField& field : fields_of(row)) {
    cells.emplace_back(field.key,
                       std::visit([](const auto& value) { return cell_of(value); }, field.value));
  }
  return cells;
}

std::string csv_of(const ValidationReport& report) {
  std::vector<CsvRow> rows;
  for (const ValidationRow& row : report.rows) {
    rows.push_back(row_of_run(row));
  }
  return csv_text(rows);
}

std::string text_of(const ValidationReport& report, const ValidateOptions& options) {
  switch (options.format) {
    case Format::json:
      return validation_json(report);
    case Format::csv:
      return csv_of(report);
    case Format::text:
      break;
  }
  const auto detail = options.every_row ? ValidationDetail::every_row : ValidationDetail::summary;
  return validation_text(report, detail, style_for(stdout));
}

int run(const ValidateOptions& options) {
  if (const auto writable = check_output(options.plot, options.files); !writable) {
    return fail(writable.error());
  }
  const auto report = report_of(options);
  if (!report) {
    return fail(report.error());
  }
  if (!options.plot.empty()) {
    if (const auto written = write_file(options.plot, validation_plot(*report)); !written) {
      return fail(written.error(), kMachineFailed);
    }
  }
  return print(text_of(*report, options), kDone);
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("validate", "predicted against measured step times and memory");
  auto options = std::make_shared<ValidateOptions>();
  command->add_option("FILE", options->files, "arrays of scenarios that have `measured`")
      ->required();
  command->add_flag("--rows", options->every_row, "a line for every run");
  command->add_flag("--leave-one-source-out", options->leave_one_source_out,
                    "also predict each file with stacks fitted to the other files");
  command->add_option("--plot", options->plot, "write predicted against measured to this SVG file")
      ->check(names_a_file)
      ->type_name("FILE.svg");
  add_format(*command, options->format);
  add_example(*command, "trainyard validate ../shared/measured/runs/*.json --plot errors.svg");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
