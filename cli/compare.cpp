// trainyard compare A B
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/groups.h"
#include "cli/planner_run.h"
#include "cli/text/csv.h"
#include "cli/text/layout/columns.h"
#include "cli/text/layout/table.h"
#include "planner/findings/explain.h"
#include "scenarios/question.h"
#include "scenarios/unlike_step.h"
#include "scenarios/write/profile.h"
#include "scenarios/write/simulation.h"
#include "simulator/reading/comparison.h"

namespace trainyard {
namespace {

constexpr std::size_t kDifferencesShown = 24;

struct CompareOptions {
  std::filesystem::path before, after;
  Format format = Format::text;
};

struct PlayedStep {
  std::string name;
  StepSimulation simulation;
};

// What is compared: a scenario's simulated step, or the mean step of a profile.
struct Timed {
  std::optional<PlayedStep> played;
  std::optional<Profile> profile;

  const std::string& name() const { return played ? played->name : profile->name; }
  Seconds step_time() const {
    return played ? played->simulation.step_time : mean_step_time(*profile);
  }
};

Expected<PlayedStep> played_on_alike(const std::filesystem::path& file, const Question& question) {
  const auto plan = plan_of(file, question);
  if (!plan) return tl::unexpected(plan.error());
  auto simulation = simulate(question.job, *plan, {.conditions = question.scenario.simulation});
  if (!simulation) return tl::unexpected(in_file(file, simulation.error()));
  return PlayedStep{question.scenario.name, *std::move(simulation)};
}

Expected<PlayedStep> played(const std::filesystem::path& file) {
  auto question = read_question(file, NodeKinds::any);
  if (!question) return tl::unexpected(question.error());
  const Scenario& scenario = question->scenario;
  if (!scenario.unlike) return played_on_alike(file, *question);
  auto answer = search_groups(scenario);
  if (!answer) return tl::unexpected(in_file(file, answer.error()));
  if (answer->best.use == GroupUse::alone) {
    return played_on_alike(file, question_of_group(*std::move(question), answer->best));
  }
  auto step = simulate_groups(grouped_job(scenario), scenario, *std::move(answer),
                              {.conditions = scenario.simulation});
  if (!step) return tl::unexpected(in_file(file, step.error()));
  return PlayedStep{scenario.name, std::move(step->simulation)};
}

Expected<Timed> timed(const std::filesystem::path& file) {
  if (is_profile(file)) {
    return read_profile(file).map([](Profile profile) { return Timed{{}, std::move(profile)}; });
  }
  return played(file).map([](PlayedStep simulated) { return Timed{std::move(simulated), {}}; });
}

// Profiles of `trainyard run` have the program's names; a profiler's trace has kernels only.
bool has_program_names(const Profile& profile) {
  return std::ranges::any_of(profile.operations,
                             [](const ProfiledOperation& of) { return of.predicted > Seconds(0); });
}

OperationNames names_for(const Timed& before, const Timed& after) {
  for (const Timed* side : {&before, &after}) {
    if (side->profile && !has_program_names(*side->profile)) return OperationNames::kernels;
  }
  return OperationNames::program;
}

std::vector<OperationTime> times_of(const Timed& side, OperationNames names) {
  if (side.played) return operation_times(side.played->simulation, names);
  std::vector<OperationTime> times;
  times.reserve(side.profile->operations.size());
  for (const ProfiledOperation& of : side.profile->operations) {
    times.push_back({of.stage, of.operation, of.tasks, of.measured});
  }
  return times;
}

std::string parts_table(const PlayedStep& a, const PlayedStep& b, const Style& style) {
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

// If one side was measured, only the whole step can be compared, not its parts.
std::string steps_table(const Timed& a, const Timed& b, const Style& style) {
  if (a.played && b.played) return parts_table(*a.played, *b.played, style);
  Table table({{"step", "", Align::left}, {"ms", ""}});
  for (const auto& [label, side] : {std::pair{"A", &a}, std::pair{"B", &b}}) {
    table.add_row({fmt::format("{}, {}", label, side->played ? "simulated" : "measured"),
                   milliseconds(side->step_time())});
  }
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
  const auto before = timed(options.before);
  if (was_interrupted()) return kInterrupted;
  if (!before) return fail(before.error());
  const auto after = timed(options.after);
  if (was_interrupted()) return kInterrupted;
  if (!after) return fail(after.error());
  const OperationNames names = names_for(*before, *after);
  const auto differences = compare(times_of(*before, names), times_of(*after, names));
  switch (options.format) {
    case Format::json:
      return print(comparison_json(before->step_time(), after->step_time(), differences), kDone);
    case Format::csv:
      return print(csv_text(rows_of(differences)), kDone);
    case Format::text:
      break;
  }
  const Style style = style_for(stdout);
  return print(
      fmt::format("A  {}\nB  {}\n\n{}\n{}", before->name(), after->name(),
                  steps_table(*before, *after, style), operations_table(differences, style)),
      kDone);
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "compare",
      "two steps operation by operation, simulated or measured: what got slower, and where");
  auto options = std::make_shared<CompareOptions>();
  command
      ->add_option(
          "A", options->before,
          "scenario document, or a profile of `run` or of PyTorch's profiler (import kineto)")
      ->required();
  command->add_option("B", options->after, "the same, compared with A")->required();
  add_format(*command, options->format);
  add_example(*command,
              "trainyard compare scenarios/cases/gpt3-175b-full-recomputation.json "
              "scenarios/cases/gpt3-175b-selective-recomputation.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
