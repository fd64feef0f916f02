// trainyard validate FILE…
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/csv.h"
#include "cli/progress.h"
#include "cli/question.h"
#include "cli/validation_text.h"
#include "model/cost/estimate.h"
#include "scenarios/output.h"
#include "scenarios/validation.h"

namespace trainyard {
namespace {

struct ValidateOptions {
  std::vector<std::filesystem::path> files;
  Format format = Format::text;
  bool every_row = false;
};

ValidationRow row_of(const std::string& file, const Scenario& scenario) {
  if (!scenario.plan) {
    return unpriced_row(file, scenario, "it has no plan");
  }
  const PreparedJob job = prepare(scenario.job);
  const auto plan = requested_plan(scenario, job);
  if (!plan) {
    return unpriced_row(file, scenario,
                        fmt::format("{}: {}", plan.error().where, plan.error().message));
  }
  return priced_row(file, scenario, estimate(job, *plan));
}

// Nothing is priced before all files have been read.
Expected<std::vector<ValidationRow>> rows_of(const std::vector<std::filesystem::path>& files) {
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
  std::vector<ValidationRow> rows;
  for (const auto& [file, scenario] : scenarios) {
    rows.push_back(row_of(file, scenario));
    progress.show(static_cast<double>(rows.size()) / static_cast<double>(scenarios.size()));
  }
  return rows;
}

std::string csv_of(const ValidationReport& report) {
  std::vector<CsvRow> rows;
  for (const ValidationRow& row : report.rows) {
    rows.push_back({{"file", row.file},
                    {"name", row.name},
                    {"source", row.source},
                    {"release", row.release},
                    {"device", row.device},
                    {"devices", std::to_string(row.devices)},
                    {"stack", row.stack},
                    {"size", row.size},
                    {"parallelism", row.parallelism},
                    {"predicted_step_time_s", csv_number(row.predicted)},
                    {"step_time_low_s", csv_number(row.low)},
                    {"step_time_high_s", csv_number(row.high)},
                    {"measured_step_time_s", csv_number(row.measured)},
                    {"error", csv_number(row.error)},
                    {"predicted_peak_memory_bytes", csv_number(row.predicted_memory)},
                    {"measured_peak_memory_bytes", csv_number(row.measured_memory)},
                    {"memory_error", csv_number(row.memory_error)},
                    {"feasible", row.predicted ? (row.feasible ? "true" : "false") : ""},
                    {"note", row.note}});
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
  auto rows = rows_of(options.files);
  if (!rows) {
    return fail(rows.error());
  }
  return print(text_of(summarise(*std::move(rows)), options), kDone);
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("validate", "predicted against measured step times and memory");
  auto options = std::make_shared<ValidateOptions>();
  command->add_option("FILE", options->files, "arrays of scenarios that have `measured`")
      ->required();
  command->add_flag("--rows", options->every_row, "a line for every run");
  add_format(*command, options->format);
  add_example(*command, "trainyard validate ../shared/measured/runs/korthikanti.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
