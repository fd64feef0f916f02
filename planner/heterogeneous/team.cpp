#include "planner/heterogeneous/team.h"

#include <algorithm>
#include <utility>

#include "planner/heterogeneous/value.h"
#include "planner/search/ranking.h"

namespace trainyard {

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

GroupShare share_of_whole(const PreparedJob& job, const Plan& plan, const Estimate& priced) {
  GroupShare share{.stages = plan.pipeline_parallel,
                   .layers = job.job.model.layers,
                   .replicas = plan.data_parallel,
                   .microbatches = plan.microbatches,
                   .recompute = {plan.recompute, plan.recompute_per_stage},
                   .peak_memory = priced.peak_memory,
                   .fullest_stage = priced.fullest_stage,
                   .busy = computing_time(plan, priced)};
  for (const StageEstimate& stage : priced.stages) {
    share.kernels = std::max(share.kernels, kernels_of(plan, stage));
  }
  return share;
}

GroupedPlan alone_on(const UnlikeCluster& cluster, std::size_t group, const PreparedJob& job,
                     const Plan& plan, const Estimate& priced, const GroupSearchOptions& options) {
  GroupedPlan alone{.order = {group}, .plan = plan, .step_time = priced.step_time};
  alone.breakdown = priced.breakdown;
  alone.feasible = priced.feasible;
  alone.shares.resize(cluster.groups.size());
  alone.shares[group] = share_of_whole(job, plan, priced);
  set_value(cluster, {&job, 1}, options, alone);
  return alone;
}

bool computes_in(const Cluster& group, const PrecisionRecipe& precision) {
  return group.device.supports(precision);
}

Members groups_that_compute(const GroupedJob& job) {
  Members members;
  for (std::size_t g = 0; g < job.cluster.groups.size(); ++g) {
    if (computes_in(job.cluster.groups[g], job.training.precision)) members.push_back(g);
  }
  return members;
}

int nodes_of_all(const GroupedJob& job) {
  int nodes = 0;
  for (const Cluster& group : job.cluster.groups) nodes += group.nodes;
  return nodes;
}

GroupedJob job_of(const GroupedJob& job, const Members& members) {
  GroupedJob part = job;
  part.cluster.groups.clear();
  for (const std::size_t g : members) part.cluster.groups.push_back(job.cluster.groups[g]);
  return part;
}

bool same_plan(const GroupedPlan& a, const GroupedPlan& b) {
  return a.use == b.use && a.order == b.order && same_choices(a.plan, b.plan) &&
         a.plan.layers_per_stage == b.plan.layers_per_stage &&
         std::ranges::equal(a.shares, b.shares, {}, &GroupShare::microbatches,
                            &GroupShare::microbatches);
}

GroupedPlan of_all(GroupedPlan plan, const Members& members, std::size_t groups) {
  std::vector<GroupShare> shares(groups);
  for (std::size_t i = 0; i < members.size(); ++i) shares[members[i]] = plan.shares[i];
  plan.shares = std::move(shares);
  for (std::size_t& g : plan.order) g = members[g];
  return plan;
}

}  // namespace trainyard
