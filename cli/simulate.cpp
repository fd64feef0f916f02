// trainyard simulate SCENARIO
#include "cli/text/simulate.h"

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/groups.h"
#include "cli/plan/groups_csv.h"
#include "cli/plan/groups_report.h"
#include "cli/planner_run.h"
#include "cli/text/csv.h"
#include "cli/text/estimate.h"
#include "cli/text/layout/columns.h"
#include "scenarios/question.h"
#include "scenarios/unlike_step.h"
#include "scenarios/write/simulation.h"
#include "scenarios/write/trace.h"

namespace trainyard {
namespace {

struct SimulateOptions {
  std::filesystem::path file;
  StepOptions step;
  std::filesystem::path trace;  // empty: none
  Format format = Format::text;
};

const std::map<std::string, NetworkGrain> kGrains = {{"collective", NetworkGrain::collective},
                                                     {"message", NetworkGrain::message}};
const std::map<std::string, Fold> kFolds = {{"auto", Fold::automatic}, {"off", Fold::off}};

std::string text_of(const Question& question, const Plan& plan, const StepSimulation& simulation,
                    Format format) {
  switch (format) {
    case Format::json:
      return simulation_json(question.scenario, question.job, plan, simulation, elapsed());
    case Format::csv:
      return csv_text({csv_row(question.scenario.name,
                               {plan, as_estimate(question.job, plan, simulation), {}})});
    case Format::text:
      break;
  }
  return simulation_report(question, plan, simulation, style_for(stdout));
}

// The error where the fullest stage does not fit.
Expected<void> check_memory(const Question& question, const Plan& plan,
                            const StepSimulation& simulation) {
  const Estimate found = as_estimate(question.job, plan, simulation);
  const Cluster& cluster = question.job.job.cluster;
  if (found.feasible) return {};
  if (found.peak_memory <= cluster.device.memory) {
    return failure("memory", host_words(found.host_memory, cluster));
  }
  const auto stage = static_cast<std::size_t>(found.fullest_stage);
  const MemoryTimeline& memory = simulation.stages[stage].memory;
  const auto owner = static_cast<std::size_t>(memory.owner);
  return failure(
      "memory",
      fmt::format("stage {} needs {} at {}, the device has {}; most of it is {}", stage,
                  with_unit(found.peak_memory), with_unit(to_seconds(memory.peak.time)),
                  with_unit(cluster.device.memory), simulation.step.program->buffers[owner].name));
}

// Writes the trace, if it was asked for.
Expected<void> write_asked_trace(const SimulateOptions& options, const StepSimulation& simulation) {
  if (options.trace.empty()) return {};
  const InterruptGuard guard;  // after Ctrl-C a file written in part is removed
  return write_trace(options.trace, simulation, was_interrupted);
}

int fail_to_write(const Error& error) {
  return fail(error, was_interrupted() ? kInterrupted : kMachineFailed);
}

int run_on_alike(const SimulateOptions& options, const Question& question) {
  const auto plan = plan_of(options.file, question);
  if (was_interrupted()) return kInterrupted;
  if (!plan) return fail(plan.error());
  const auto simulation = simulate(question.job, *plan, options.step);
  if (!simulation) return fail(in_file(options.file, simulation.error()));
  if (const auto written = write_asked_trace(options, *simulation); !written) {
    return fail_to_write(written.error());
  }
  const auto fits = check_memory(question, *plan, *simulation);
  const int printed = print(text_of(question, *plan, *simulation, options.format), kDone);
  return printed == kDone && !fits ? fail(fits.error(), kAnswerIsNo) : printed;
}

std::string text_of(const Question& question, const UnlikeStep& step, Format format) {
  switch (format) {
    case Format::json:
      return grouped_simulation_json(question.scenario, step, elapsed());
    case Format::csv:
      return estimate_groups_csv(question.scenario, step.answer.best);
    case Format::text:
      break;
  }
  return grouped_simulation_report(question, step, style_for(stdout));
}

// A plan that uses one group alone is played on a cluster of that group.
int run_on_groups(const SimulateOptions& options, Question question) {
  auto answer = search_groups(question.scenario);
  if (was_interrupted()) return kInterrupted;
  if (!answer) return fail(in_file(options.file, answer.error()));
  if (answer->best.use == GroupUse::alone) {
    return run_on_alike(options, question_of_group(std::move(question), answer->best));
  }
  const auto step = simulate_groups(grouped_job(question.scenario), question.scenario,
                                    *std::move(answer), options.step);
  if (!step) return fail(in_file(options.file, step.error()));
  if (const auto written = write_asked_trace(options, step->simulation); !written) {
    return fail_to_write(written.error());
  }
  const GroupedPlan& plan = step->answer.best;
  const int printed = print(text_of(question, *step, options.format), kDone);
  if (printed != kDone || plan.feasible) return printed;
  return fail({"memory", misfit_words(question.scenario, plan)}, kAnswerIsNo);
}

int run(SimulateOptions options) {
  if (const auto writable = check_output(options.trace, {options.file}); !writable) {
    return fail(writable.error());
  }
  auto question = read_question(options.file, NodeKinds::any);
  if (!question) return fail(question.error());
  options.step.conditions = question->scenario.simulation;
  if (question->scenario.unlike) return run_on_groups(options, *std::move(question));
  return run_on_alike(options, *question);
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "simulate", "the step played in virtual time: critical path, contention, memory over time");
  auto options = std::make_shared<SimulateOptions>();
  add_scenario(*command, options->file);
  command
      ->add_option(
          "--network", options->step.grain,
          "what shares links: the messages of a collective's phase as one flow, or each of "
          "them (slower)")
      ->transform(one_of(kGrains))
      ->option_text("collective|message=collective");
  command
      ->add_option("--fold", options->step.fold,
                   "auto: of ranks that behave alike one is played; off: all are")
      ->transform(one_of(kFolds))
      ->option_text("auto|off=auto");
  command
      ->add_option("--trace", options->trace, "a timeline of every operation, for ui.perfetto.dev")
      ->check(names_a_file)
      ->type_name("FILE");
  add_format(*command, options->format);
  add_example(*command, "trainyard simulate scenarios/examples/llama-3.1-405b-2048-h100.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
