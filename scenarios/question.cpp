#include "scenarios/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/cost/estimate.h"
#include "planner/passes/auto_schedule.h"
#include "planner/request.h"
#include "scenarios/fields/place.h"
#include "scenarios/scenario_text.h"
#include "simulator/life/run.h"

namespace trainyard {
namespace {

Expected<LifeSettings> of_bearable_length(LifeSettings settings) {
  const double events = expected_events(settings);
  if (events <= kMostEvents) return settings;
  return failure("/run", fmt::format("found {:.2g} checkpoints and failures in a run; allowed: at "
                                     "most {:.0g}",
                                     events, kMostEvents));
}

// Whether the cluster keeps its kind with fewer nodes; other fabrics have as many as their wiring
// says.
bool can_be_smaller(const Cluster& cluster) {
  return cluster.inter.kind == InterNodeKind::fat_tree || cluster.inter.kind == InterNodeKind::rail;
}

// The numbers of nodes left for which another plan is searched: after the first few failures, and
// parts of the job that degrees divide.
std::vector<int> smaller_jobs(int nodes) {
  std::vector<int> sizes;
  for (const int left : {nodes - 1, nodes - 2, nodes - 3, nodes - 4, nodes * 15 / 16, nodes * 7 / 8,
                         nodes * 3 / 4, nodes / 2}) {
    if (left >= 1) sizes.push_back(left);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// For each smaller job the speed of its best plan, relative to the whole job.
std::vector<Replan> replans_of(const Scenario& scenario, const PreparedJob& job,
                               const LifeSettings& settings, Seconds whole) {
  if (scenario.reliability.elastic != ElasticPolicy::replan) return {};
  if (!can_be_smaller(job.job.cluster)) return {};
  SearchOptions options = search_options(scenario);
  options.top = 1;
  options.threads = 1;
  std::vector<Replan> replans;
  for (const int nodes : smaller_jobs(settings.nodes)) {
    Job smaller = job.job;
    smaller.cluster.nodes = nodes;
    const PreparedJob prepared = prepare(smaller);
    const SearchResult found = search(prepared, options, analytic_evaluator(prepared));
    if (found.plans.empty()) continue;
    const double speed = whole / found.plans.front().estimate.step_time;
    replans.push_back({nodes, std::min(1.0, speed)});
  }
  return replans;
}

// `replans`: a function from the settings to the plans for fewer nodes.
template <typename Replans>
Expected<LifeSettings> run_settings(const Scenario& scenario, const PreparedJob& job,
                                    const Candidate& candidate, const Replans& replans) {
  LifeSettings settings = life_settings(job, candidate.plan, candidate.estimate.step_time,
                                        scenario.reliability, scenario.checkpoint);
  const auto tokens = static_cast<double>(job.job.training.tokens);
  settings.limit = scenario.run.duration;
  settings.replans = replans(settings);
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

Expected<Question> prepared_question(Scenario scenario, const std::string& file, NodeKinds nodes) {
  if (const auto like = check_like_nodes(scenario); nodes == NodeKinds::alike && !like) {
    const Error& error = like.error();
    return failure(fmt::format("{}: {}", file, error.where), error.message);
  }
  PreparedJob job = prepare(scenario.job);
  return Question{std::move(scenario), std::move(job)};
}

}  // namespace

Expected<Question> read_question(const std::filesystem::path& file, NodeKinds nodes) {
  return read_scenario(file).and_then([&](Scenario scenario) {
    return prepared_question(std::move(scenario), file.string(), nodes);
  });
}

Expected<Question> question_of(std::string_view text, const std::filesystem::path& file) {
  return parse_scenario_at(text, file).and_then([&](Scenario scenario) {
    return prepared_question(std::move(scenario), shown_path(file), NodeKinds::alike);
  });
}

Expected<Plan> requested_plan(const Scenario& scenario, const PreparedJob& job) {
  return complete_plan(job, *scenario.plan);
}

SearchOptions search_options(const Scenario& scenario) {
  SearchOptions options;
  options.space = scenario.space;
  options.valuation.reliability = scenario.reliability;
  options.valuation.checkpoint = scenario.checkpoint;
  if (scenario.plan) {
    options.base = *scenario.plan;
    options.base.layers_per_stage.clear();
    options.base.recompute = {};
    options.base.recompute_per_stage.clear();
    options.base.passes = nullptr;
    options.base.sharding_group.reset();
  }
  options.base.layers_per_stage = scenario.space.layers_per_stage;
  return options;
}

Expected<LifeSettings> settings_of_run(const Scenario& scenario, const PreparedJob& job,
                                       const Candidate& candidate) {
  return run_settings(scenario, job, candidate, [&](const LifeSettings& settings) {
    return replans_of(scenario, job, settings, candidate.estimate.step_time);
  });
}

GroupedJob grouped_job(const Scenario& scenario) {
  return {scenario.job.model, scenario.job.training, *scenario.unlike};
}

GroupSearchOptions group_options(const Scenario& scenario) {
  return {.space = scenario.space,
          .layers_per_stage = scenario.space.layers_per_stage,
          .valuation = {.reliability = scenario.reliability, .checkpoint = scenario.checkpoint}};
}

Question question_of_group(Question question, const GroupedPlan& plan) {
  Scenario& scenario = question.scenario;
  scenario.job.cluster = scenario.unlike->groups[plan.order.front()];
  scenario.unlike.reset();
  scenario.use_of_groups.reset();
  scenario.plan = request_of(plan.plan);
  question.job = prepare(scenario.job);
  return question;
}

Expected<LifeSettings> settings_of_run(const Scenario& scenario, const GroupedJob& job,
                                       const UnlikeAnswer& answer) {
  return run_settings(scenario, answer.stand_in, answer.candidate, [&](const LifeSettings& life) {
    const bool replanned = life.reliability.elastic == ElasticPolicy::replan &&
                           std::ranges::all_of(job.cluster.groups, can_be_smaller);
    return replanned ? replans_of_groups(job, scenario, answer, smaller_jobs(life.nodes))
                     : std::vector<Replan>();
  });
}

}  // namespace trainyard
