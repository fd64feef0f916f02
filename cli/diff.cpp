// trainyard diff A B
#include "cli/text/diff.h"

#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/groups.h"
#include "cli/plan/groups_table.h"
#include "cli/planner_run.h"
#include "cli/text/csv.h"
#include "model/cost/estimate.h"
#include "model/cost/reliability.h"
#include "scenarios/plan_value.h"
#include "scenarios/question.h"

namespace trainyard {
namespace {

struct DiffOptions {
  std::filesystem::path before, after;
  Format format = Format::text;
};

// `job` is the scenario's, or the one that stands in for its groups.
ComparedAnswer compared(const Scenario& scenario, const PreparedJob& job, Candidate&& candidate) {
  const Estimate& estimate = candidate.estimate;
  ComparedAnswer answer;
  answer.goodput = estimate_goodput(job, candidate.plan, estimate.step_time, scenario.reliability,
                                    scenario.checkpoint)
                       .goodput;
  if (estimate.energy_per_step && scenario.carbon_intensity) {
    answer.carbon_per_step = estimate.energy_per_step->value() * *scenario.carbon_intensity;
  }
  answer.candidate = std::move(candidate);
  return answer;
}

Expected<NamedAnswer> answer_through_groups(const std::filesystem::path& file,
                                            const Scenario& scenario) {
  auto answer = search_groups(scenario);
  if (!answer) return tl::unexpected(in_file(file, answer.error()));
  const std::string table = groups_table(scenario, {answer->best}, style_for(stdout));
  NamedAnswer named{compared(scenario, answer->stand_in, std::move(answer->candidate)),
                    scenario.name, table};
  named.groups = UseOfGroups{*scenario.unlike, std::move(answer->best), scenario.carbon_intensity};
  return named;
}

Expected<NamedAnswer> answer_of(const std::filesystem::path& file) {
  const auto question = read_question(file, NodeKinds::any);
  if (!question) return tl::unexpected(question.error());
  if (question->scenario.unlike) return answer_through_groups(file, question->scenario);
  auto plan = plan_of(file, *question);
  if (!plan) return tl::unexpected(plan.error());
  Estimate result = estimate(question->job, *plan);
  const Scenario& scenario = question->scenario;
  return NamedAnswer{compared(scenario, question->job, {std::move(*plan), std::move(result), {}}),
                     scenario.name, ""};
}

// Adds keys that `other` has and `stated` lacks, with their values in the plan that was priced.
void fill_in(const Json& other, const Json& priced, Json& stated) {
  for (const auto& [key, value] : other.items()) {
    if (!priced.contains(key)) continue;
    if (!stated.contains(key)) {
      stated[key] = priced[key];
    } else if (value.is_object() && stated[key].is_object()) {
      fill_in(value, priced[key], stated[key]);
    }
  }
}

// A key that one document states and the other leaves to its default may have the same value in
// both.
void fill_in_plans(const NamedAnswer& a, const NamedAnswer& b, Json& before, Json& after) {
  if (a.groups || b.groups || !before.contains("plan") || !after.contains("plan")) return;
  const Json stated = before["plan"];
  fill_in(after["plan"], plan_value(a.candidate.plan), before["plan"]);
  fill_in(stated, plan_value(b.candidate.plan), after["plan"]);
}

std::string csv_of(const std::vector<KeyChange>& changes) {
  std::vector<CsvRow> rows;
  rows.reserve(changes.size());
  for (const KeyChange& change : changes) {
    rows.push_back({{"key", change.key}, {"a", change.before}, {"b", change.after}});
  }
  return csv_text(rows);
}

int compare_scenarios(const DiffOptions& options) {
  const auto a = answer_of(options.before);
  if (!a) return was_interrupted() ? kInterrupted : fail(a.error());
  const auto b = answer_of(options.after);
  if (!b) return was_interrupted() ? kInterrupted : fail(b.error());
  auto before = resolved_scenario(options.before);
  if (!before) return fail(before.error());
  auto after = resolved_scenario(options.after);
  if (!after) return fail(after.error());
  fill_in_plans(*a, *b, *before, *after);
  const std::vector<KeyChange> changes = changes_between(*before, *after);
  switch (options.format) {
    case Format::json:
      return print(scenario_difference_json(changes, *a, *b), kDone);
    case Format::csv:
      return print(csv_of(changes), kDone);
    case Format::text:
      break;
  }
  return print(scenario_difference_text(changes, *a, *b, style_for(stdout)), kDone);
}

int compare_results(const DiffOptions& options) {
  const auto difference = difference_of(options.before, options.after);
  if (!difference) return fail(difference.error());
  switch (options.format) {
    case Format::json:
      return print(result_difference_json(*difference), kDone);
    case Format::csv:
      return print(csv_of(difference->documents), kDone);
    case Format::text:
      break;
  }
  return print(result_difference_text(*difference, style_for(stdout)), kDone);
}

int run(const DiffOptions& options) {
  const bool results = is_database(options.before);
  if (results != is_database(options.after)) {
    return fail({(results ? options.after : options.before).string(),
                 "found a scenario beside the results of a sweep; allowed: two of a kind"});
  }
  return results ? compare_results(options) : compare_scenarios(options);
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "diff", "two scenarios, or the results of two sweeps: what changed, why the answer moved");
  auto options = std::make_shared<DiffOptions>();
  command->add_option("A", options->before, "scenario document, or what a sweep wrote")->required();
  command->add_option("B", options->after, "another of the same kind")->required();
  add_format(*command, options->format);
  add_example(*command,
              "trainyard diff scenarios/cases/llama-3.1-70b-oversubscription-1.json "
              "scenarios/cases/llama-3.1-70b-oversubscription-2.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
