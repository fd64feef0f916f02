#include "planner/heterogeneous/together.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/cost/breakdown.h"
#include "model/cost/estimate.h"
#include "planner/heterogeneous/pricer.h"
#include "planner/heterogeneous/team.h"
#include "planner/heterogeneous/value.h"
#include "planner/planner.h"
#include "planner/request.h"

namespace trainyard {
namespace {

// The narrowest connection of a device, between any two groups and inside each.
Boundary narrowest(const UnlikeCluster& cluster) {
  Boundary least = boundary_between(cluster, 0, 1);
  for (const Cluster& group : cluster.groups) {
    least.bandwidth = std::min(least.bandwidth, nics_of_a_device(group));
    least.latency = std::max(least.latency, group.inter.latency);
  }
  return least;
}

// For each group a cluster of all nodes, all of that group's kind, on the narrowest network.
std::vector<PreparedJob> jobs_as_one(GroupedJob job) {
  const Boundary least = narrowest(job.cluster);
  for (Cluster& group : job.cluster.groups) {
    const BytesPerSecond own = nics_of_a_device(group);
    if (own > least.bandwidth) group.inter.bandwidth *= least.bandwidth / own;
    group.inter.latency = least.latency;
  }
  return prepared_groups(job, std::vector<int>(job.cluster.groups.size(), nodes_of_all(job)));
}

Breakdown slowest_parts(const std::vector<Breakdown>& own) {
  Breakdown slowest = own.front();
  for (const BreakdownPart& part : breakdown_parts()) {
    for (const Breakdown& one : own) {
      slowest.*part.time = std::max(slowest.*part.time, one.*part.time);
    }
  }
  return slowest;
}

// The parts of a step in which nothing overlaps: what a group has to do and to send.
Breakdown in_turn(const PreparedJob& job, Plan plan) {
  plan.overlap = {};
  return estimate(job, plan).breakdown;
}

// The group, if there is one, that is the slowest in every part. A step takes no longer on all
// groups than on devices like its own, beside whose compute communication hides as it does there.
std::optional<std::size_t> slowest_group(const std::vector<Breakdown>& in_turn) {
  const Breakdown slowest = slowest_parts(in_turn);
  const auto is_slowest = [&](const Breakdown& own) {
    return std::ranges::all_of(breakdown_parts(), [&](const BreakdownPart& part) {
      return own.*part.time >= slowest.*part.time * (1 - 1e-9);
    });
  };
  const auto found = std::ranges::find_if(in_turn, is_slowest);
  if (found == in_turn.end()) return std::nullopt;
  return static_cast<std::size_t>(found - in_turn.begin());
}

class AsOne {
 public:
  AsOne(const GroupedJob& job, const GroupSearchOptions& options)
      : job_(job), options_(options), as_one_(jobs_as_one(job)) {}

  const std::vector<PreparedJob>& jobs() const { return as_one_; }

  GroupedPlan price(const Plan& plan) const {
    std::vector<Breakdown> own, apart;
    GroupedPlan found{.use = GroupUse::together, .plan = plan, .feasible = true};
    for (const PreparedJob& job : as_one_) {
      const Estimate estimated = estimate(job, plan);
      own.push_back(estimated.breakdown);
      apart.push_back(in_turn(job, plan));
      found.shares.push_back(share_of_whole(job, plan, estimated));
      found.feasible = found.feasible && estimated.feasible;
    }
    found.order.resize(as_one_.size());
    std::iota(found.order.begin(), found.order.end(), 0U);
    const std::optional<std::size_t> pacemaker = slowest_group(apart);
    found.breakdown = pacemaker ? own[*pacemaker] : slowest_parts(own);
    found.step_time = found.breakdown.total();
    set_value(job_.cluster, as_one_, options_, found);
    return found;
  }

  // The plan of a request that is legal on a cluster of each group's nodes.
  Expected<Plan> plan_of(const PlanRequest& request) const {
    Expected<Plan> plan = tl::unexpected(Error{});
    for (const PreparedJob& prepared : as_one_) {
      const Job& j = prepared.job;
      auto own = make_plan(request, j.model, j.cluster, j.training);
      if (!own) return own;
      const bool hides = own->overlap.expert_parallel;
      if (!plan) plan = *std::move(own);
      plan->overlap.expert_parallel = plan->overlap.expert_parallel && hides;
    }
    return plan;
  }

 private:
  const GroupedJob& job_;
  const GroupSearchOptions& options_;
  std::vector<PreparedJob> as_one_;
};

// Searches with each group in turn as the pacemaker, and passes what is found to `take`, priced on
// all groups: plans that fit the pacemaker, or where none does the closest. They may not fit
// others.
template <typename Take>
void search_as_one(const GroupedJob& job, GroupWatch& watch, const Take& take) {
  const AsOne as_one(job, watch.options());
  const auto groups = static_cast<double>(as_one.jobs().size());
  for (std::size_t g = 0; g < as_one.jobs().size(); ++g) {
    if (g > 0 && watch.is_over(static_cast<double>(g) / groups)) return;
    const PreparedJob& pacemaker = as_one.jobs()[g];
    const SearchResult found =
        search(pacemaker, watch.search_options(), analytic_evaluator(pacemaker));
    if (!found.optimal) watch.stop();
    for (const Candidate& candidate : found.plans_or_closest()) {
      const auto plan = as_one.plan_of(request_of(candidate.plan));
      if (plan) take(as_one.price(*plan));
    }
  }
}

}  // namespace

std::optional<GroupedPlan> find_together(const GroupedJob& job, GroupWatch& watch) {
  std::optional<GroupedPlan> best;
  search_as_one(job, watch, [&](GroupedPlan plan) {
    if (plan.feasible && (!best || is_better(plan, *best))) best = std::move(plan);
  });
  return best;
}

void find_together(const GroupedJob& job, GroupWatch& watch, GroupedFront& front) {
  search_as_one(job, watch, [&](GroupedPlan plan) { front.offer(std::move(plan)); });
}

std::optional<GroupedPlan> closest_together(const GroupedJob& job, GroupWatch& watch) {
  std::optional<GroupedPlan> closest;
  search_as_one(job, watch, [&](GroupedPlan plan) {
    if (!closest || plan.fullness < closest->fullness) closest = std::move(plan);
  });
  return closest;
}

Expected<GroupedPlan> price_together(const GroupedJob& job, const PlanRequest& request,
                                     const GroupSearchOptions& options) {
  const AsOne as_one(job, options);
  return as_one.plan_of(request).map([&](const Plan& plan) { return as_one.price(plan); });
}

}  // namespace trainyard
