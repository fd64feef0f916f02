#include "planner/unlike_groups.h"

#include <algorithm>
#include <utility>

#include "planner/bound.h"
#include "planner/group_watch.h"
#include "planner/unlike_pipeline.h"
#include "planner/unlike_replicas.h"

namespace trainyard {
namespace {

using Members = std::vector<std::size_t>;

// All choices of two groups or more, the larger first.
std::vector<Members> teams_of(std::size_t groups) {
  std::vector<Members> teams;
  for (std::size_t chosen = 1; chosen < std::size_t{1} << groups; ++chosen) {
    Members members;
    for (std::size_t g = 0; g < groups; ++g) {
      if ((chosen >> g & 1) != 0) members.push_back(g);
    }
    if (members.size() > 1) teams.push_back(std::move(members));
  }
  std::stable_sort(teams.begin(), teams.end(),
                   [](const Members& a, const Members& b) { return a.size() > b.size(); });
  return teams;
}

GroupedJob job_of(const GroupedJob& job, const Members& members) {
  GroupedJob part = job;
  part.cluster.groups.clear();
  for (const std::size_t g : members) part.cluster.groups.push_back(job.cluster.groups[g]);
  return part;
}

// A plan for some groups as one for all: the others stand idle.
GroupedPlan of_all(GroupedPlan plan, const Members& members, std::size_t groups) {
  std::vector<GroupShare> shares(groups);
  for (std::size_t i = 0; i < members.size(); ++i) shares[members[i]] = plan.shares[i];
  plan.shares = std::move(shares);
  for (std::size_t& g : plan.order) g = members[g];
  return plan;
}

bool is_faster(const std::optional<GroupedPlan>& plan, const std::optional<GroupedPlan>& best) {
  return plan && (!best || plan->step_time < best->step_time);
}

void find_alone(const std::vector<PreparedJob>& own, GroupWatch& watch, GroupedPlans& result) {
  for (std::size_t g = 0; g < own.size(); ++g) {
    watch.start_way();
    if (g > 0 && watch.is_over(0)) return;
    const PreparedJob& job = own[g];
    SearchResult found = search(job, watch.search_options(), analytic_evaluator(job));
    if (!found.optimal) watch.stop();
    if (found.plans.empty()) continue;
    const auto& [plan, priced, confirmation] = found.plans.front();
    GroupedPlan alone{.order = {g}, .plan = plan, .step_time = priced.step_time, .feasible = true};
    alone.shares.resize(own.size());
    alone.shares[g] = {.stages = plan.pipeline_parallel,
                       .layers = job.job.model.layers,
                       .replicas = plan.data_parallel,
                       .microbatches = plan.microbatches,
                       .peak_memory = priced.peak_memory};
    result.alone[g] = std::move(alone);
  }
}

void find_together(const GroupedJob& job, GroupWatch& watch, GroupedPlans& result) {
  const std::size_t groups = job.cluster.groups.size();
  const std::vector<Members> teams = teams_of(groups);
  for (const Members& team : teams) {
    watch.start_way();
    const GroupedPipelines found = find_pipelines(job_of(job, team), watch);
    if (!is_faster(found.best, result.pipeline)) continue;
    result.pipeline = of_all(*found.best, team, groups);
    result.even_pipeline.reset();
    if (found.even) result.even_pipeline = of_all(*found.even, team, groups);
  }
  for (const Members& team : teams) {
    watch.start_way();
    const auto found = find_replicas(job_of(job, team), watch);
    if (is_faster(found, result.replicas)) result.replicas = of_all(*found, team, groups);
  }
}

// All groups at their peak, each with its share of the work.
Seconds bound_of_all(const std::vector<PreparedJob>& own) {
  double steps_a_second = 0;
  for (const PreparedJob& job : own) {
    steps_a_second +=
        1 / objective_bound(job, parameter_shares(job), Objective::step_time, Offload{});
  }
  return Seconds(1 / steps_a_second);
}

}  // namespace

BytesPerSecond nics_of_a_device(const Cluster& group) {
  const InterNode& inter = group.inter;
  return inter.bandwidth * (inter.efficiency * inter.nics_per_node / group.devices_per_node);
}

Boundary boundary_between(const UnlikeCluster& cluster, std::size_t a, std::size_t b) {
  const Cluster& one = cluster.groups[a];
  const Cluster& other = cluster.groups[b];
  return {cluster.boundary.value_or(std::min(nics_of_a_device(one), nics_of_a_device(other))),
          cluster.boundary_latency.value_or(std::max(one.inter.latency, other.inter.latency))};
}

GroupedPlans plan_groups(const GroupedJob& job, const GroupSearchOptions& options) {
  const std::size_t groups = job.cluster.groups.size();
  std::vector<int> nodes;
  for (const Cluster& group : job.cluster.groups) nodes.push_back(group.nodes);
  const std::vector<PreparedJob> own = prepared_groups(job, nodes);
  GroupedPlans result{.alone = std::vector<std::optional<GroupedPlan>>(groups)};
  result.bound = bound_of_all(own);
  GroupWatch watch(options, static_cast<int>(groups + 2 * teams_of(groups).size()));
  find_alone(own, watch, result);
  find_together(job, watch, result);
  result.complete = !watch.stopped();
  return result;
}

std::vector<GroupedPlan> in_order(const GroupedPlans& found) {
  std::vector<GroupedPlan> plans;
  for (const auto& plan : {found.pipeline, found.even_pipeline, found.replicas}) {
    if (plan) plans.push_back(*plan);
  }
  for (const auto& plan : found.alone) {
    if (plan) plans.push_back(*plan);
  }
  std::stable_sort(plans.begin(), plans.end(), [](const GroupedPlan& a, const GroupedPlan& b) {
    return a.step_time < b.step_time;
  });
  return plans;
}

double gap_of(const GroupedPlans& found) {
  const std::vector<GroupedPlan> plans = in_order(found);
  return plans.empty() ? 1 : std::max(0.0, 1 - found.bound / plans.front().step_time);
}

}  // namespace trainyard
