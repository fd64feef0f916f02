#include "planner/heterogeneous/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/schedule/schedule.h"
#include "planner/heterogeneous/pricer.h"
#include "planner/heterogeneous/replicas.h"
#include "planner/heterogeneous/space.h"
#include "planner/heterogeneous/team.h"
#include "planner/heterogeneous/together.h"
#include "planner/heterogeneous/value.h"
#include "planner/request.h"

namespace trainyard {
namespace {

std::string_view offload_name(const Offload& offload) {
  return offload == Offload() ? "none" : "another";
}

// Refuses other values of the dimensions that have only one in plans through several groups.
Expected<void> check_only_values(GroupUse use, const PlanRequest& plan) {
  if (plan.recompute.mode == RecomputeMode::automatic) {
    return failure("/plan/recompute",
                   "found auto with groups of unlike nodes; allowed: none, selective, full");
  }
  if (use == GroupUse::together || use == GroupUse::alone) return {};
  SearchSpace asked;
  const bool is_named = plan.passes || !plan.schedule.empty();
  if (is_named) asked.schedule = {plan.passes ? "passes" : plan.schedule};
  asked.virtual_stages = {plan.virtual_stages.value_or(1)};
  asked.context_parallel = {plan.context_parallel};
  asked.expert_tensor_parallel = {plan.expert_tensor_parallel};
  asked.offload = {std::string(offload_name(plan.offload))};
  asked.rank_order = {plan.rank_order};
  asked.expert_parallel = {plan.expert_parallel};
  const auto wrong = without_only_value(use, asked);
  if (!wrong) return {};
  return failure(
      fmt::format("/plan/{}", wrong->key),
      fmt::format("found another value with groups of unlike nodes; allowed: {}", wrong->value));
}

// Layers and recomputation are free; but each group must have whole stages.
Expected<void> check_stages(const GroupedJob& team, const Plan& plan) {
  for (const Cluster& group : team.cluster.groups) {
    const int stage = plan.tensor_parallel * plan.data_parallel;
    if (group.devices() % stage == 0) continue;
    return failure("/plan/data_parallel",
                   fmt::format("found stages of {} devices on a group of {}; allowed: whole stages "
                               "on every group of /use_of_groups",
                               stage, group.devices()));
  }
  const int node = team.cluster.groups.front().devices_per_node;
  if (node % plan.tensor_parallel == 0) return {};
  return failure("/plan/tensor_parallel",
                 fmt::format("found {} with groups of unlike nodes; allowed: a divisor of the "
                             "{} devices of a node",
                             plan.tensor_parallel, node));
}

Expected<GroupedPlan> price_pipeline(const GroupedJob& team, const GroupedRequest& request,
                                     const GroupSearchOptions& options) {
  const PipelinePricer pricer(team, options);
  return pricer.plan_of(request.plan).and_then([&](const Plan& plan) {
    return check_stages(team, plan).map([&] { return pricer.price(plan, request.order); });
  });
}

Expected<std::vector<NamedReplicas>> named_replicas(const GroupedRequest& request) {
  const std::size_t groups = request.order.size();
  const auto one_each = [groups](std::string_view key, std::size_t found) -> Expected<void> {
    if (found == groups) return {};
    return failure(
        fmt::format("/use_of_groups/{}", key),
        fmt::format("found {} entries; allowed: {}, one for each group of `order`", found, groups));
  };
  if (auto done = one_each("micro_batches", request.microbatches.size()); !done) {
    return tl::unexpected(done.error());
  }
  const auto own = request.recompute.empty() ? groups : request.recompute.size();
  if (auto done = one_each("recompute", own); !done) return tl::unexpected(done.error());
  std::vector<NamedReplicas> named(groups);
  for (std::size_t i = 0; i < groups; ++i) {
    named[i] = {.request = request.plan, .microbatches = request.microbatches[i]};
    named[i].request.data_parallel.reset();
    if (request.recompute.empty()) continue;
    named[i].request.recompute = request.recompute[i].every_stage;
    named[i].request.recompute_per_stage = request.recompute[i].per_stage;
  }
  return named;
}

// The replicas must take the whole batch, and be as many as the devices allow.
Expected<void> check_shares(const GroupedJob& team, const PlanRequest& plan,
                            const GroupedPlan& found) {
  int replicas = 0;
  std::int64_t sequences = 0;
  for (const GroupShare& share : found.shares) {
    replicas += share.replicas;
    sequences += std::int64_t{share.replicas} * share.microbatches * plan.micro_batch;
  }
  if (plan.data_parallel.value_or(replicas) != replicas) {
    return failure("/plan/data_parallel", fmt::format("found {}; allowed: {}, the replicas of all "
                                                      "groups of /use_of_groups",
                                                      *plan.data_parallel, replicas));
  }
  if (sequences == team.training.global_batch) return {};
  return failure("/use_of_groups/micro_batches",
                 fmt::format("found {} sequences in all; allowed: {}, /training/global_batch",
                             sequences, team.training.global_batch));
}

Expected<GroupedPlan> price_replicas(const GroupedJob& team, const GroupedRequest& request,
                                     const GroupSearchOptions& options) {
  return named_replicas(request)
      .and_then([&](const std::vector<NamedReplicas>& named) {
        return price_replicas(team, named, options);
      })
      .and_then([&](GroupedPlan found) {
        return check_shares(team, request.plan, found).map([&] { return std::move(found); });
      });
}

Expected<void> check_order(const std::vector<std::size_t>& order, std::size_t groups) {
  std::vector<std::size_t> seen;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_again = std::ranges::find(seen, order[i]) != seen.end();
    if (order[i] < groups && !is_again) {
      seen.push_back(order[i]);
      continue;
    }
    return failure(
        fmt::format("/use_of_groups/order/{}", i),
        fmt::format("found {}; allowed: each of 0 to {} once at most", order[i], groups - 1));
  }
  return {};
}

// The request with its groups numbered as in their team, and with lists of one entry a group in the
// order of the team.
GroupedRequest in_team(GroupedRequest request, const Members& members) {
  const GroupedRequest whole = request;
  const bool of_replicas = request.use == GroupUse::replicas;
  for (std::size_t i = 0; i < whole.order.size(); ++i) {
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(members, whole.order[i]) -
                                             members.begin());
    request.order[i] = at;
    if (of_replicas && i < whole.microbatches.size() && at < request.microbatches.size()) {
      request.microbatches[at] = whole.microbatches[i];
    }
    if (of_replicas && i < whole.recompute.size() && at < request.recompute.size()) {
      request.recompute[at] = whole.recompute[i];
    }
  }
  return request;
}

Expected<GroupedPlan> price_alone(const GroupedJob& team, const PlanRequest& request,
                                  const GroupSearchOptions& options) {
  const PreparedJob own = prepare({team.model, team.cluster.groups.front(), team.training});
  const Job& j = own.job;
  return make_plan(request, j.model, j.cluster, j.training).map([&](const Plan& plan) {
    return alone_on(team.cluster, 0, own, plan, estimate(own, plan), options);
  });
}

Expected<GroupedPlan> price_team(const GroupedJob& team, const GroupedRequest& request,
                                 const GroupSearchOptions& options) {
  switch (request.use) {
    case GroupUse::pipeline:
      return price_pipeline(team, request, options);
    case GroupUse::replicas:
      return price_replicas(team, request, options);
    case GroupUse::alone:
      return price_alone(team, request.plan, options);
    case GroupUse::together:
      break;
  }
  return price_together(team, request.plan, options);
}

}  // namespace

GroupedRequest request_of(const GroupedPlan& found) {
  GroupedRequest request{.use = found.use, .order = found.order, .plan = request_of(found.plan)};
  request.plan.data_parallel = plan_of_all(found).data_parallel;
  if (found.use != GroupUse::replicas) return request;
  for (const std::size_t g : found.order) {
    request.microbatches.push_back(found.shares[g].microbatches);
    request.recompute.push_back(found.shares[g].recompute);
  }
  return request;
}

Expected<GroupedPlan> price_grouped(const GroupedJob& job, const GroupedRequest& request,
                                    const GroupSearchOptions& options) {
  const std::size_t groups = job.cluster.groups.size();
  if (auto done = check_order(request.order, groups); !done) return tl::unexpected(done.error());
  if (auto done = check_only_values(request.use, request.plan); !done) {
    return tl::unexpected(done.error());
  }
  Members members = request.order;
  std::ranges::sort(members);
  const GroupedJob team = job_of(job, members);
  const GroupedRequest part = in_team(request, members);
  return price_team(team, part, options).map([&](GroupedPlan plan) {
    return of_all(std::move(plan), members, groups);
  });
}

}  // namespace trainyard
