// trainyard goodput SCENARIO
#include "cli/text/goodput.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/groups.h"
#include "cli/planner_run.h"
#include "cli/progress.h"
#include "cli/text/estimate.h"
#include "scenarios/question.h"
#include "scenarios/write/goodput.h"
#include "simulator/life/run.h"

namespace trainyard {
namespace {

struct GoodputOptions {
  std::filesystem::path file;
  Format format = Format::text;
};

// The plan of the scenario; without one, the best that the planner finds (design §3).
Expected<Candidate> candidate_of(const GoodputOptions& options, const Question& question) {
  if (!question.scenario.plan) return best_candidate(options.file, question);
  return requested_plan(question.scenario, question.job)
      .map([&question](Plan plan) {
        Estimate result = estimate(question.job, plan);
        return Candidate{std::move(plan), std::move(result), {}};
      })
      .map_error([&](Error error) { return in_file(options.file, std::move(error)); });
}

// Empty when interrupted before the first life.
std::optional<RunReport> simulate(const Question& question, const Candidate& candidate,
                                  const LifeSettings& settings) {
  const InterruptGuard guard;
  Progress progress("simulating runs");
  const RunLength& run = question.scenario.run;
  CampaignOptions options{.runs = run.runs, .seed = static_cast<std::uint64_t>(run.seed)};
  options.interrupted = interrupt_flag();
  options.progress = [&progress](double fraction) { progress.show(fraction); };
  const std::vector<Life> lives = live_many(settings, options);
  if (lives.empty()) return std::nullopt;
  constexpr int kTuningRuns = 40;
  options.runs = std::min(options.runs, kTuningRuns);
  RunReport report;
  report.settings = settings;
  report.feasible = candidate.estimate.feasible;
  report.campaign = summary_of(lives);
  report.closed_form =
      estimate_goodput(question.job, candidate.plan, settings.step, question.scenario.reliability,
                       question.scenario.checkpoint);
  const GoodputEstimate& closed = report.closed_form;
  report.interval = best_interval(settings, std::max(closed.daly, closed.shortest), options);
  report.spares = best_spares(settings, options);
  report.bill = bill_of(question.job.job.cluster, candidate.estimate, settings, report.campaign);
  return report;
}

// What is simulated: the job, its plan and the settings of its life.
struct LivedJob {
  Question question;
  Candidate candidate;
  LifeSettings settings;
  std::optional<GroupedPlan> groups;
};

Expected<LivedJob> subject_of_groups(const GoodputOptions& options, Question question) {
  const GroupedJob job = grouped_job(question.scenario);
  const auto answer = search_groups(question.scenario);
  if (!answer) return tl::unexpected(in_file(options.file, answer.error()));
  auto settings = settings_of_run(question.scenario, job, *answer);
  if (!settings) return tl::unexpected(in_file(options.file, settings.error()));
  question.job = answer->stand_in;
  return LivedJob{std::move(question), answer->candidate, *std::move(settings), answer->best};
}

Expected<LivedJob> subject_of(const GoodputOptions& options) {
  auto question = read_question(options.file, NodeKinds::any);
  if (!question) return tl::unexpected(question.error());
  if (question->scenario.unlike) return subject_of_groups(options, *std::move(question));
  auto candidate = candidate_of(options, *question);
  if (!candidate) return tl::unexpected(candidate.error());
  auto settings = settings_of_run(question->scenario, question->job, *candidate);
  if (!settings) return tl::unexpected(in_file(options.file, settings.error()));
  return LivedJob{*std::move(question), *std::move(candidate), *std::move(settings), {}};
}

int run(const GoodputOptions& options) {
  const auto subject = subject_of(options);
  if (was_interrupted()) return kInterrupted;
  if (!subject) return fail(subject.error());
  const auto& [question, candidate, settings, groups] = *subject;
  auto report = simulate(question, candidate, settings);
  if (!report) return kInterrupted;
  report->groups = groups;
  const bool fits = candidate.estimate.feasible;
  const int status = all_ended(settings, report->campaign) && fits ? kDone : kAnswerIsNo;
  switch (options.format) {
    case Format::json:
      return print(goodput_json(question.scenario, candidate.plan, *report), status);
    case Format::csv:
      return print(csv_text({goodput_row(question, *report)}), status);
    case Format::text:
      break;
  }
  const Style style = style_for(stdout);
  const std::string caveat =
      fits ? "" : "\n" + verdict(candidate.estimate, question.job.job.cluster, style);
  return print(goodput_text(question, *report, style) + caveat, status);
}

}  // namespace

void add_goodput(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "goodput", "the life of a whole run: failures, checkpoints, what they leave of the time");
  auto options = std::make_shared<GoodputOptions>();
  add_scenario(*command, options->file);
  add_format(*command, options->format);
  add_example(*command, "trainyard goodput scenarios/examples/llama-3.1-405b-54-days.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
