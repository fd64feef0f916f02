#include "planner/heterogeneous/groups.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/bound/bound.h"
#include "planner/heterogeneous/front.h"
#include "planner/heterogeneous/group_watch.h"
#include "planner/heterogeneous/pipeline.h"
#include "planner/heterogeneous/pricer.h"
#include "planner/heterogeneous/replicas.h"
#include "planner/heterogeneous/space.h"
#include "planner/heterogeneous/team.h"
#include "planner/heterogeneous/together.h"
#include "planner/heterogeneous/value.h"

namespace trainyard {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

bool is_best(const std::optional<GroupedPlan>& plan, const std::optional<GroupedPlan>& so_far) {
  return plan && (!so_far || is_better(*plan, *so_far));
}

void find_alone(const GroupedJob& grouped, const std::vector<PreparedJob>& own, GroupWatch& watch,
                GroupedFront& front, GroupedPlans& result) {
  for (std::size_t g = 0; g < own.size(); ++g) {
    watch.start_way();
    if (g > 0 && watch.is_over(0)) return;
    const PreparedJob& job = own[g];
    SearchResult found = search(job, watch.search_options(), analytic_evaluator(job));
    if (!found.optimal) watch.stop();
    if (watch.options().second) {
      for (const Candidate& candidate : found.plans) {
        front.offer(
            alone_on(grouped.cluster, g, job, candidate.plan, candidate.estimate, watch.options()));
      }
    } else if (!found.plans.empty()) {
      const Candidate& best = found.plans.front();
      result.alone[g] =
          alone_on(grouped.cluster, g, job, best.plan, best.estimate, watch.options());
    }
    const bool any_is_of_interest = watch.options().worth == kNoLimit;
    if (any_is_of_interest && found.optimal && found.plans.empty() && found.closest.empty()) {
      result.left_out.push_back({.use = GroupUse::alone, .group = g});
    }
  }
}

double worth_of(const GroupSearchOptions& options, const std::optional<GroupedPlan>& so_far) {
  return so_far ? std::min(options.worth, so_far->value) : options.worth;
}

void find_pipelines_of(const GroupedJob& job, const std::vector<Members>& teams, GroupWatch& watch,
                       GroupedPlans& result) {
  const std::size_t groups = job.cluster.groups.size();
  for (const Members& team : teams) {
    watch.start_way();
    const GroupedPipelines found =
        find_pipelines(job_of(job, team), watch, worth_of(watch.options(), result.pipeline));
    if (!is_best(found.best, result.pipeline)) continue;
    result.pipeline = of_all(*found.best, team, groups);
    result.even_pipeline.reset();
    if (found.even) result.even_pipeline = of_all(*found.even, team, groups);
  }
}

void find_replicas_of(const GroupedJob& job, const std::vector<Members>& teams, GroupWatch& watch,
                      GroupedPlans& result) {
  for (const Members& team : teams) {
    watch.start_way();
    const auto found =
        find_replicas(job_of(job, team), watch, worth_of(watch.options(), result.replicas));
    if (is_best(found, result.replicas)) {
      result.replicas = of_all(*found, team, job.cluster.groups.size());
    }
  }
}

void find_together_of(const GroupedJob& job, const std::vector<Members>& teams, GroupWatch& watch,
                      GroupedPlans& result) {
  for (const Members& team : teams) {
    watch.start_way();
    if (watch.is_over(0)) return;
    const auto found = find_together(job_of(job, team), watch);
    if (is_best(found, result.together)) {
      result.together = of_all(*found, team, job.cluster.groups.size());
    }
  }
}

// For two objectives: offers each team's plans, and turns them into plans for all groups before
// another team is searched.
template <void (*find)(const GroupedJob& job, GroupWatch& watch, GroupedFront& front)>
void offer_all_of(const GroupedJob& job, const std::vector<Members>& teams, GroupWatch& watch,
                  GroupedFront& front) {
  for (const Members& team : teams) {
    watch.start_way();
    find(job_of(job, team), watch, front);
    front.settle(
        [&](GroupedPlan plan) { return of_all(std::move(plan), team, job.cluster.groups.size()); });
  }
}

bool is_asked_for(const GroupSearchOptions& options, GroupUse use) {
  return options.uses.empty() || std::ranges::find(options.uses, use) != options.uses.end();
}

// A way through several groups.
struct WayTogether {
  void (*find)(const GroupedJob& job, const std::vector<Members>& teams, GroupWatch& watch,
               GroupedPlans& result);
  void (*offer_all)(const GroupedJob& job, const std::vector<Members>& teams, GroupWatch& watch,
                    GroupedFront& front);
};

// The ways through several groups that the space allows; the others are added to `left_out`.
std::vector<WayTogether> ways_together(const GroupedJob& job, const std::vector<Members>& teams,
                                       const GroupSearchOptions& options, GroupedPlans& result) {
  const auto any_team = [&](auto has) {
    return [&job, &teams, has](const GroupSearchOptions& some) {
      return std::ranges::any_of(teams,
                                 [&](const Members& team) { return has(job_of(job, team), some); });
    };
  };
  std::vector<WayTogether> ways;
  const auto add = [&](GroupUse use, auto has, const WayTogether& way) {
    if (!is_asked_for(options, use)) return;
    auto left_out = left_out_way(use, options, any_team(has));
    if (left_out) return result.left_out.push_back(*left_out);
    ways.push_back(way);
  };
  add(GroupUse::pipeline, has_pipelines, {find_pipelines_of, offer_all_of<find_pipelines>});
  add(GroupUse::replicas, has_replicas, {find_replicas_of, offer_all_of<find_replicas>});
  if (is_asked_for(options, GroupUse::together)) {
    ways.push_back({find_together_of, offer_all_of<find_together>});
  }
  return ways;
}

// The closest plan of each way that the space allows, ordered by how full it is.
std::vector<GroupedPlan> closest_of_all(const GroupedJob& job, const std::vector<PreparedJob>& own,
                                        const std::vector<Members>& teams, const GroupWatch& before,
                                        const GroupedPlans& found) {
  std::vector<GroupedPlan> closest;
  const GroupSearchOptions options = before.options_for_rest();
  GroupWatch watch(options, static_cast<int>(own.size() + 2 * teams.size()));
  for (std::size_t g = 0; g < own.size(); ++g) {
    watch.start_way();
    const SearchResult alone = search(own[g], watch.search_options(), analytic_evaluator(own[g]));
    if (alone.closest.empty()) continue;
    const Candidate& least = alone.closest.front();
    closest.push_back(
        alone_on(job.cluster, g, own[g], least.plan, least.estimate, watch.options()));
  }
  const bool has_pipelines = std::ranges::none_of(found.left_out, [](const LeftOutWay& way) {
    return !way.group && way.use == GroupUse::pipeline;
  });
  const auto add = [&](auto find) {
    std::optional<GroupedPlan> best;
    for (const Members& team : teams) {
      watch.start_way();
      auto plan = find(job_of(job, team), watch);
      if (!plan || (best && best->fullness <= plan->fullness)) continue;
      best = of_all(*std::move(plan), team, job.cluster.groups.size());
    }
    if (best) closest.push_back(*std::move(best));
  };
  if (has_pipelines) add(closest_pipeline);
  add(closest_together);
  std::ranges::stable_sort(closest, {}, &GroupedPlan::fullness);
  return closest;
}

// Lower bound of the step: all groups work at their peak, each on its share of the batch.
Seconds bound_of_all(const std::vector<PreparedJob>& own) {
  double steps_a_second = 0;
  for (const PreparedJob& job : own) {
    steps_a_second +=
        1 / objective_bound(job, parameter_shares(job), Objective::step_time, Offload{});
  }
  return Seconds(1 / steps_a_second);
}

}  // namespace

GroupedPlans plan_groups(const GroupedJob& job, const GroupSearchOptions& options) {
  const std::size_t groups = job.cluster.groups.size();
  std::vector<int> nodes;
  for (const Cluster& group : job.cluster.groups) nodes.push_back(group.nodes);
  const std::vector<PreparedJob> own = prepared_groups(job, nodes);
  GroupedPlans result{.objective = options.objective,
                      .second = options.second,
                      .alone = std::vector<std::optional<GroupedPlan>>(groups)};
  result.bound = bound_of_all(own);
  result.value_bound = value_bound(own, options, result.bound);
  const std::vector<Members> teams = teams_of(groups);
  const std::vector<WayTogether> together = ways_together(job, teams, options, result);
  GroupWatch watch(options, static_cast<int>(groups + together.size() * teams.size()));
  GroupedFront front;
  if (is_asked_for(options, GroupUse::alone)) find_alone(job, own, watch, front, result);
  front.settle([](GroupedPlan plan) { return plan; });
  for (const WayTogether& way : together) {
    if (options.second) {
      way.offer_all(job, teams, watch, front);
    } else {
      way.find(job, teams, watch, result);
    }
  }
  result.front = front.plans();
  if (options.finds_closest && in_order(result).empty() && !watch.stopped()) {
    result.closest = closest_of_all(job, own, teams, watch, result);
  }
  result.complete = !watch.stopped();
  return result;
}

std::vector<GroupedPlan> in_order(const GroupedPlans& found) {
  if (found.second) return found.front;
  std::vector<GroupedPlan> plans;
  for (const auto& plan : {found.pipeline, found.replicas, found.together}) {
    if (plan) plans.push_back(*plan);
  }
  // Where even layers are the best, that plan is the pipeline above.
  const auto& even = found.even_pipeline;
  if (even && even->step_time != found.pipeline->step_time) plans.push_back(*even);
  for (const auto& plan : found.alone) {
    if (plan) plans.push_back(*plan);
  }
  std::stable_sort(plans.begin(), plans.end(), is_better);
  return plans;
}

double gap_of(const GroupedPlans& found) {
  const std::vector<GroupedPlan> plans = in_order(found);
  return plans.empty() ? 1 : std::max(0.0, 1 - found.value_bound / plans.front().value);
}

}  // namespace trainyard
