// trainyard estimate SCENARIO
#include "model/cost/estimate.h"

#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan/groups.h"
#include "cli/planner_run.h"
#include "cli/progress.h"
#include "cli/text/csv.h"
#include "cli/text/estimate.h"
#include "scenarios/question.h"
#include "scenarios/write/estimate.h"

namespace trainyard {
namespace {

struct EstimateOptions {
  std::filesystem::path file;
  Format format = Format::text;
};

// The plan of the scenario; without one, the best that the planner finds (design §3), or the one
// that misses the memory by the least.
Expected<Candidate> candidate_of(const EstimateOptions& options, const Question& question) {
  const PreparedJob& job = question.job;
  if (question.scenario.plan) {
    return requested_plan(question.scenario, job)
        .map([&job](Plan plan) {
          Estimate result = estimate(job, plan);
          return Candidate{std::move(plan), std::move(result), {}};
        })
        .map_error([&](Error error) { return in_file(options.file, std::move(error)); });
  }
  return best_candidate(options.file, question);
}

// Share of the progress bar for pricing the plan, which reports no progress itself; finding what
// would help takes most of the time.
constexpr double kPriced = 0.3;

std::string text_of(const Question& question, const Candidate& candidate, Format format,
                    Progress& progress) {
  switch (format) {
    case Format::json:
      return estimate_json(question.scenario, question.job, candidate.plan, candidate.estimate);
    case Format::csv:
      return csv_text({csv_row(question.scenario.name, candidate)});
    case Format::text:
      break;
  }
  const auto looking = [&progress](double done) {
    progress.show(kPriced + (1 - kPriced) * done);
    return false;
  };
  return estimate_report(question, candidate, style_for(stdout), {.is_over = looking});
}

int run(const EstimateOptions& options) {
  std::optional<Progress> progress(std::in_place, "estimating");
  const auto question = read_question(options.file, NodeKinds::any);
  if (!question) {
    return fail(question.error());
  }
  if (question->scenario.unlike) {
    return estimate_of_groups(options.file, *question, options.format);
  }
  const auto candidate = candidate_of(options, *question);
  if (was_interrupted()) {
    return kInterrupted;
  }
  if (!candidate) {
    return fail(candidate.error());
  }
  const std::string text = text_of(*question, *candidate, options.format, *progress);
  progress.reset();
  return print(text, candidate->estimate.feasible ? kDone : kAnswerIsNo);
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "estimate", "step time with its breakdown, utilisation, memory by stage, verdict");
  auto options = std::make_shared<EstimateOptions>();
  add_scenario(*command, options->file);
  add_format(*command, options->format);
  add_example(*command, "trainyard estimate scenarios/examples/llama-3.1-405b-2048-h100.json");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace trainyard
