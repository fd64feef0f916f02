#include "scenarios/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/cost/estimate.h"
#include "planner/auto_schedule.h"
#include "simulator/life/run.h"

namespace trainyard {
namespace {

// Beyond it, one run takes longer than anyone waits.
Expected<LifeSettings> of_bearable_length(LifeSettings settings) {
  constexpr double kMostEvents = 1e8;
  const double events = expected_events(settings);
  if (events <= kMostEvents) return settings;
  return failure("/run", fmt::format("found {:.2g} checkpoints and failures in a run; allowed: at "
                                     "most {:.0g}",
                                     events, kMostEvents));
}

}  // namespace

Expected<Question> read_question(const std::filesystem::path& file, NodeKinds nodes) {
  auto scenario = read_scenario(file);
  if (!scenario) return tl::unexpected(scenario.error());
  if (const auto like = check_like_nodes(*scenario); nodes == NodeKinds::alike && !like) {
    const Error& error = like.error();
    return failure(fmt::format("{}: {}", file.string(), error.where), error.message);
  }
  PreparedJob job = prepare(scenario->job);
  return Question{*std::move(scenario), std::move(job)};
}

Expected<Plan> requested_plan(const Scenario& scenario, const PreparedJob& job) {
  return complete_plan(job, *scenario.plan);
}

Evaluator analytic_evaluator(const PreparedJob& job) {
  return [&job](const Plan& plan, Estimate& out) { estimate(job, plan, out); };
}

SearchOptions search_options(const Scenario& scenario) {
  SearchOptions options;
  options.space = scenario.space;
  options.valuation.reliability = scenario.reliability;
  options.valuation.checkpoint = scenario.checkpoint;
  if (scenario.plan) {
    options.base = *scenario.plan;
    options.base.layers_per_stage.clear();
    options.base.recompute_per_stage.clear();
    options.base.passes = nullptr;
    options.base.sharding_group.reset();
  }
  return options;
}

Expected<LifeSettings> settings_of_run(const Scenario& scenario, const PreparedJob& job,
                                       const Candidate& candidate) {
  LifeSettings settings =
      life_settings(job, candidate.plan, scenario.reliability, scenario.checkpoint);
  const auto tokens = static_cast<double>(job.job.training.tokens);
  settings.step = candidate.estimate.step_time;
  settings.interval = std::max(settings.interval, settings.step);
  settings.limit = scenario.run.duration;
  if (scenario.run.work) {
    settings.work = *scenario.run.work;
  } else if (tokens > 0) {
    settings.work = Seconds(tokens / candidate.estimate.tokens_per_second);
  } else if (settings.limit) {
    settings.work = *settings.limit;
  } else {
    return failure("/run",
                   "found no length of the run; allowed: `work`, `duration` or /training/tokens");
  }
  return of_bearable_length(std::move(settings));
}

}  // namespace trainyard
