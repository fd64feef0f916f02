// trainyard program SCENARIO --rank N
#include "cli/text/program.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <system_error>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/groups.h"
#include "cli/planner_run.h"
#include "model/program/lower.h"
#include "scenarios/question.h"
#include "scenarios/write/program.h"

namespace trainyard {
namespace {

struct ProgramOptions {
  std::filesystem::path file;
  std::int64_t rank = 0;
  Format format = Format::text;
};

Expected<Program> program_of(const ProgramOptions& options, const Question& question,
                             const Plan& plan) {
  if (options.rank < 0 || options.rank >= plan.devices()) {
    return failure("--rank",
                   fmt::format("found {}, allowed 0 to {}", options.rank, plan.devices() - 1));
  }
  const Job& job = question.job.job;
  return lower(job.model, job.training, plan).map_error([&](Error error) {
    return in_file(options.file, std::move(error));
  });
}

// The plan of a job on groups of unlike nodes. Ranks of several groups have one program, unless the
// groups have replicas of their own.
Expected<Plan> plan_on_groups(const ProgramOptions& options, const Scenario& scenario) {
  auto answer = search_groups(scenario);
  if (!answer) return tl::unexpected(in_file(options.file, answer.error()));
  if (answer->best.use != GroupUse::replicas) return std::move(answer->best.plan);
  const std::string where = scenario.use_of_groups ? "/use_of_groups/use" : "/cluster/groups";
  return tl::unexpected(in_file(
      options.file, Error{where,
                          "found replicas on several groups, each with a program of its own; "
                          "allowed: a pipeline, groups as one cluster, or one group alone"}));
}

// Checks a rank number: CLI11 would take "" for 0, and does not say what is allowed.
std::string names_a_rank(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, wrong] = std::from_chars(text.data(), end, number);
  if (wrong == std::errc() && rest == end) return {};
  return fmt::format("found \"{}\", allowed the number of a rank of the plan, from 0", text);
}

int run(const ProgramOptions& options) {
  const auto question = read_question(options.file, NodeKinds::any);
  if (!question) return fail(question.error());
  const Scenario& scenario = question->scenario;
  const auto plan =
      scenario.unlike ? plan_on_groups(options, scenario) : plan_of(options.file, *question);
  if (was_interrupted()) return kInterrupted;
  if (!plan) return fail(plan.error());
  const auto program = program_of(options, *question, *plan);
  if (!program) return fail(program.error());
  const RankLayout layout(*plan, question->job.job.model.kv_heads);
  const int rank = static_cast<int>(options.rank);
  const RankProgram of{*program, layout, rank};
  switch (options.format) {
    case Format::json:
      return print(program_json(scenario, *plan, *program, layout, rank), kDone);
    case Format::csv:
      return print(csv_text(program_rows(of)), kDone);
    case Format::text:
      break;
  }
  return print(program_text(of, style_for(stdout)), kDone);
}

}  // namespace

void add_program(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("program", "the operations of one rank in one step of the plan");
  auto options = std::make_shared<ProgramOptions>();
  add_scenario(*command, options->file);
  command->add_option("--rank", options->rank, "whose operations, from 0")
      ->required()
      ->check(names_a_rank);
  add_format(*command, options->format);
  add_example(*command,
              "trainyard program scenarios/examples/llama-3.1-405b-2048-h100.json --rank 0");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
