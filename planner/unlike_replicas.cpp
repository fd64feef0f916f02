#include "planner/unlike_replicas.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "model/cost/collective.h"
#include "model/cost/estimate.h"
#include "planner/batch_split.h"
#include "planner/enumeration.h"
#include "planner/unlike_pipeline.h"

namespace trainyard {
namespace {

// One group's replicas under the recomputation that is fastest for their number of micro-batches.
class ReplicaPricer {
 public:
  ReplicaPricer(const PreparedJob& job, const PlanRequest& request) : job_(job) {
    const Job& j = job.job;
    // A replica may have any number of micro-batches: whether the whole batch divides by this
    // group's replicas is no question.
    Training training = j.training;
    const int replicas =
        j.cluster.devices() / (request.tensor_parallel * request.pipeline_parallel);
    training.global_batch = std::int64_t{replicas} * request.micro_batch;
    PlanRequest asked = request;
    for (const RecomputeMode mode :
         {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
      asked.recompute = {mode, 0};
      if (auto plan = plan_if_legal(asked, j.model, j.cluster, training)) {
        plans_.push_back(*std::move(plan));
      }
    }
  }

  bool is_legal() const { return !plans_.empty(); }
  int replicas() const { return plans_.front().data_parallel; }

  // Infinite where none fits.
  Seconds price(int microbatches) {
    Seconds best(std::numeric_limits<double>::infinity());
    for (Plan& plan : plans_) {
      plan.microbatches = microbatches;
      estimate(job_, plan, scratch_);
      if (!scratch_.feasible || scratch_.step_time >= best) continue;
      best = scratch_.step_time;
      chosen_ = plan;
      peak_ = scratch_.peak_memory;
      held_ = scratch_.held;
    }
    return best;
  }
  const Plan& chosen() const { return chosen_; }
  const std::vector<StageParameters>& held() const { return held_; }
  GroupShare share() const {
    return {.stages = chosen_.pipeline_parallel,
            .layers = job_.job.model.layers,
            .replicas = chosen_.data_parallel,
            .microbatches = chosen_.microbatches,
            .peak_memory = peak_};
  }

 private:
  const PreparedJob& job_;
  std::vector<Plan> plans_;
  Plan chosen_;
  Bytes peak_;
  std::vector<StageParameters> held_;
  Estimate scratch_;
};

// All groups in a ring, as fast as the slowest boundary.
PlanLinks across_all(const GroupedJob& job, const PreparedJob& prepared, const Plan& plan) {
  const std::size_t groups = job.cluster.groups.size();
  Boundary least = boundary_between(job.cluster, 0, 1);
  for (std::size_t a = 0; a < groups; ++a) {
    for (std::size_t b = a + 1; b < groups; ++b) {
      const auto [bandwidth, latency] = boundary_between(job.cluster, a, b);
      least.bandwidth = std::min(least.bandwidth, bandwidth);
      least.latency = std::max(least.latency, latency);
    }
  }
  PlanLinks links = plan_links(prepared, plan);
  links.pipeline = {.size = static_cast<int>(groups),
                    .ranks_per_domain = 1,
                    .domains = static_cast<int>(groups),
                    .inside = least.bandwidth,
                    .inside_pair = least.bandwidth,
                    .across = least.bandwidth,
                    .across_all_to_all = least.bandwidth,
                    .across_latency = least.latency};
  return links;
}

// Each group has reduced its gradients among its own replicas; the shards that a device is left
// with are added up with those of the other groups. The largest are where replicas are the fewest.
Seconds gradient_exchange(const GroupedJob& job, const PreparedJob& prepared,
                          const ReplicaPricer& fewest) {
  double most = 0;
  for (const StageParameters& stage : fewest.held()) {
    most = std::max(most, stage.dense + stage.experts);
  }
  const Bytes shard(most * prepared.job.training.stack.reduction_bytes / fewest.replicas());
  const PlanLinks links = across_all(job, prepared, fewest.chosen());
  return collective_time(CollectiveOperation::all_reduce, links.pipeline, shard, links);
}

std::optional<GroupedPlan> best_split(const GroupedJob& job, const std::vector<PreparedJob>& own,
                                      const PlanRequest& request) {
  std::vector<ReplicaPricer> groups;
  groups.reserve(own.size());
  for (const PreparedJob& prepared : own) groups.emplace_back(prepared, request);
  std::vector<SplitGroup> times;
  for (ReplicaPricer& group : groups) {
    if (!group.is_legal()) return std::nullopt;
    times.push_back(
        {group.replicas(), [&group](int microbatches) { return group.price(microbatches); }});
  }
  const std::vector<int> split =
      split_batch(times, job.training.global_batch / request.micro_batch);
  if (split.empty()) return std::nullopt;
  GroupedPlan plan{.use = GroupUse::replicas, .feasible = true};
  plan.order.resize(groups.size());
  std::iota(plan.order.begin(), plan.order.end(), std::size_t{0});
  for (std::size_t g = 0; g < groups.size(); ++g) {
    plan.step_time = std::max(plan.step_time, groups[g].price(split[g]));
    plan.shares.push_back(groups[g].share());
  }
  plan.plan = groups.front().chosen();
  const auto fewest = std::min_element(
      groups.begin(), groups.end(),
      [](const ReplicaPricer& a, const ReplicaPricer& b) { return a.replicas() < b.replicas(); });
  plan.boundary = gradient_exchange(job, own.front(), *fewest);
  plan.step_time += plan.boundary;
  return plan;
}

std::vector<PlanRequest> replica_requests(const GroupedJob& job) {
  std::vector<PlanRequest> requests;
  int smallest = std::numeric_limits<int>::max();
  for (const Cluster& group : job.cluster.groups) smallest = std::min(smallest, group.devices());
  for (const int tensor : divisors(job.cluster.groups.front().devices_per_node)) {
    for (const int stages : divisors(smallest / tensor)) {
      for (const int micro_batch : {1, 2, 4}) {
        if (job.training.global_batch % micro_batch != 0) continue;
        requests.push_back({.tensor_parallel = tensor,
                            .pipeline_parallel = stages,
                            .schedule = "1f1b",
                            .micro_batch = micro_batch});
      }
    }
  }
  return requests;
}

}  // namespace

std::optional<GroupedPlan> find_replicas(const GroupedJob& job, GroupWatch& watch) {
  std::vector<int> nodes;
  for (const Cluster& group : job.cluster.groups) nodes.push_back(group.nodes);
  const std::vector<PreparedJob> own = prepared_groups(job, nodes);
  const std::vector<PlanRequest> requests = replica_requests(job);
  std::optional<GroupedPlan> best;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (watch.is_over(static_cast<double>(i) / static_cast<double>(requests.size()))) break;
    auto plan = best_split(job, own, requests[i]);
    if (plan && (!best || plan->step_time < best->step_time)) best = std::move(plan);
  }
  return best;
}

}  // namespace trainyard
