// trainyard compare A B
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/csv.h"
#include "cli/plan_search.h"
#include "cli/question.h"
#include "cli/table.h"
#include "cli/text.h"
#include "planner/explain.h"
#include "scenarios/write_simulation.h"
#include "simulator/comparison.h"

namespace trainyard {
namespace {

constexpr std::size_t kDifferencesShown = 24;

struct CompareOptions {
  std::filesystem::path before, after;
  Format format = Format::text;
};

struct Played {
  Question question;
  Plan plan;
  StepSimulation simulation;
};

Expected<Played> played(const std::filesystem::path& file) {
  auto question = read_question(file);
  if (!question) return tl::unexpected(question.error());
  Played out;
  out.question = *std::move(question);
  auto plan = plan_of(file, out.question);
  if (!plan) return tl::unexpected(plan.error());
  out.plan = *std::move(plan);
  auto simulation = simulate(out.question.job, out.plan);
  if (!simulation) return tl::unexpected(in_file(file, simulation.error()));
  out.simulation = *std::move(simulation);
  return out;
}

std::string parts_table(const Played& a, const Played& b, const Style& style) {
  Table table(
      {{"where the step goes", "", Align::left}, {"A", "ms"}, {"B", "ms"}, {"longer", "ms"}});
  const auto row = [&](std::string_view label, Seconds before, Seconds after) {
    table.add_row({std::string(label), milliseconds(before), milliseconds(after),
                   fmt::format("{:+.2f}", 1e3 * (after - before).value())});
  };
  for (const BreakdownPart& part : breakdown_parts()) {
    const Seconds before = a.simulation.breakdown.*part.time;
    const Seconds after = b.simulation.breakdown.*part.time;
    if (before != Seconds(0) || after != Seconds(0)) row(part.label, before, after);
  }
  table.add_rule();
  row("step", a.simulation.step_time, b.simulation.step_time);
  return table.render(style);
}

std::string operations_table(const std::vector<OperationDifference>& differences,
                             const Style& style) {
  Table table({{"stage", "", Align::left},
               {"operation", "", Align::left},
               {"A", "tasks"},
               {"B", "tasks"},
               {"A", "ms"},
               {"B", "ms"},
               {"longer", "ms"}});
  for (std::size_t i = 0; i < std::min(differences.size(), kDifferencesShown); ++i) {
    const OperationDifference& of = differences[i];
    table.add_row({fmt::format("{}", of.stage), of.operation, count(of.tasks_before),
                   count(of.tasks_after), milliseconds(of.before), milliseconds(of.after),
                   fmt::format("{:+.2f}", 1e3 * of.longer().value())});
  }
  return table.render(style);
}

std::vector<CsvRow> rows_of(const std::vector<OperationDifference>& differences) {
  std::vector<CsvRow> rows;
  rows.reserve(differences.size());
  for (const OperationDifference& of : differences) {
    rows.push_back({{"stage", fmt::format("{}", of.stage)},
                    {"operation", of.operation},
                    {"tasks_a", fmt::format("{}", of.tasks_before)},
                    {"tasks_b", fmt::format("{}", of.tasks_after)},
                    {"time_a_s", csv_number(of.before.value())},
                    {"time_b_s", csv_number(of.after.value())}});
  }
  return rows;
}

int run(const CompareOptions& options) {
  const auto before = played(options.before);
  if (was_interrupted()) return kInterrupted;
  if (!before) return fail(before.error());
  const auto after = played(options.after);
  if (was_interrupted()) return kInterrupted;
  if (!after) return fail(after.error());
  const auto differences = compare(before->simulation, after->simulation);
  switch (options.format) {
    case Format::json:
      return print(comparison_json(before->simulation, after->simulation, differences), kDone);
    case Format::csv:
      return print(csv_text(rows_of(differences)), kDone);
    case Format::text:
      break;
  }
  const Style style = style_for(stdout);
  return print(fmt::format("A  {}\nB  {}\n\n{}\n{}", before->question.scenario.name,
                           after->question.scenario.name, parts_table(*before, *after, style),
                           operations_table(differences, style)),
               kDone);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "compare", "two simulated steps operation by operation: what got slower, and where");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("A", options->before, "scenario document")->required();
  command->add_option("B", options->after, "scenario document, compared with A")->required();
  add_format(*command, options->format);
  add_example(*command,
              "trainyard compare scenarios/cases/gpt3-175b-full-recomputation.json "
              "scenarios/cases/gpt3-175b-selective-recomputation.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
