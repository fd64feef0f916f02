#include "planner/unlike_replicas.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "model/cost/collective.h"
#include "model/cost/estimate.h"
#include "planner/batch_split.h"
#include "planner/enumeration.h"
#include "planner/unlike_pipeline.h"
#include "planner/unlike_space.h"
#include "planner/unlike_value.h"

namespace trainyard {
namespace {

// One group's replicas under the recomputation that is fastest for their number of micro-batches,
// or where memory is the objective the one that takes the least.
class ReplicaPricer {
 public:
  ReplicaPricer(const PreparedJob& job, const PlanRequest& request,
                const GroupSearchOptions& options)
      : job_(job), by_memory_(options.objective == Objective::memory) {
    const Job& j = job.job;
    // A replica may have any number of micro-batches: whether the whole batch divides by this
    // group's replicas is no question.
    Training training = j.training;
    const int replicas =
        j.cluster.devices() / (request.tensor_parallel * request.pipeline_parallel);
    training.global_batch = std::int64_t{replicas} * request.micro_batch;
    PlanRequest asked = request;
    asked.layers_per_stage = options.layers_per_stage;
    for (const RecomputeChoice& choice : recomputations(options.space, request.pipeline_parallel)) {
      asked.recompute = choice.every_stage;
      asked.recompute_per_stage = choice.per_stage;
      auto plan = plan_if_legal(asked, j.model, j.cluster, training);
      if (plan && may_shard(options.space, *plan)) plans_.push_back(*std::move(plan));
    }
  }

  bool is_legal() const { return !plans_.empty(); }
  int replicas() const { return plans_.front().data_parallel; }

  // Infinite where none fits.
  Seconds price(int microbatches) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    Seconds best(kNever);
    peak_ = Bytes(kNever);
    for (Plan& plan : plans_) {
      plan.microbatches = microbatches;
      estimate(job_, plan, scratch_);
      if (!scratch_.feasible || !is_better(scratch_, best)) continue;
      best = scratch_.step_time;
      chosen_ = plan;
      peak_ = scratch_.peak_memory;
      busy_ = computing_time(plan, scratch_);
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
            .peak_memory = peak_,
            .busy = busy_};
  }

 private:
  bool is_better(const Estimate& priced, Seconds best) const {
    if (!by_memory_) return priced.step_time < best;
    return std::tuple(priced.peak_memory, priced.step_time) < std::tuple(peak_, best);
  }

  const PreparedJob& job_;
  bool by_memory_;
  std::vector<Plan> plans_;
  Plan chosen_;
  Bytes peak_;
  Seconds busy_;
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

// What all searches of a team have.
struct Team {
  const GroupedJob& job;
  const GroupSearchOptions& options;
  std::vector<PreparedJob> own;
  std::vector<PreparedJob> whole;  // each group's nodes as many as those of all; for goodput
};

Team team_of(const GroupedJob& job, const GroupSearchOptions& options) {
  std::vector<int> nodes;
  for (const Cluster& group : job.cluster.groups) nodes.push_back(group.nodes);
  Team team{.job = job, .options = options, .own = prepared_groups(job, nodes), .whole = {}};
  if (needs_goodput(options)) {
    const int all = std::accumulate(nodes.begin(), nodes.end(), 0);
    team.whole = prepared_groups(job, std::vector<int>(nodes.size(), all));
  }
  return team;
}

using Split = std::vector<int>;  // micro-batches of a replica of each group

GroupedPlan priced(const Team& team, std::vector<ReplicaPricer>& groups, const Split& split) {
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
  plan.boundary = gradient_exchange(team.job, team.own.front(), *fewest);
  plan.step_time += plan.boundary;
  set_value(team.job.cluster, team.whole, team.options, plan);
  return plan;
}

// `split` with so many of the smallest moves that leave the batch whole; empty: a group would be
// left without any.
Split moved(const std::vector<ReplicaPricer>& groups, Split split, std::size_t from, std::size_t to,
            int moves) {
  const int sequences = std::lcm(groups[from].replicas(), groups[to].replicas());
  const int fewer = moves * (sequences / groups[from].replicas());
  if (from == to || split[from] <= fewer) return {};
  split[from] -= fewer;
  split[to] += moves * (sequences / groups[to].replicas());
  return split;
}

// The moves from any group to any other that make the plan better; false: none does.
bool move_between(const Team& team, std::vector<ReplicaPricer>& groups, int moves, Split& split,
                  GroupedPlan& best) {
  bool better = false;
  for (std::size_t pair = 0; pair < groups.size() * groups.size(); ++pair) {
    Split other = moved(groups, split, pair / groups.size(), pair % groups.size(), moves);
    if (other.empty()) continue;
    GroupedPlan plan = priced(team, groups, other);
    if (!is_better(plan, best)) continue;
    best = std::move(plan);
    split = std::move(other);
    better = true;
  }
  return better;
}

// Micro-batches move from group to group, many at first, while that makes the plan better.
void refine(const Team& team, std::vector<ReplicaPricer>& groups, Split split, GroupedPlan& best) {
  const int most = *std::max_element(split.begin(), split.end());
  for (int moves = static_cast<int>(std::bit_floor(static_cast<unsigned>(most))); moves > 0;) {
    if (!move_between(team, groups, moves, split, best)) moves /= 2;
  }
}

std::optional<GroupedPlan> best_split(const Team& team, const PlanRequest& request) {
  std::vector<ReplicaPricer> groups;
  groups.reserve(team.own.size());
  for (const PreparedJob& prepared : team.own) groups.emplace_back(prepared, request, team.options);
  std::vector<SplitGroup> times;
  for (ReplicaPricer& group : groups) {
    if (!group.is_legal()) return std::nullopt;
    times.push_back(
        {group.replicas(), [&group](int microbatches) { return group.price(microbatches); }});
  }
  const Split split = split_batch(times, team.job.training.global_batch / request.micro_batch);
  if (split.empty()) return std::nullopt;
  GroupedPlan plan = priced(team, groups, split);
  // By all else the step decides between splits, and that is the shortest.
  if (team.options.objective == Objective::energy) refine(team, groups, split, plan);
  return plan;
}

// The micro-batches of t and p, with all else that the space names.
void add_requests(const GroupedJob& job, const SearchSpace& space, int tensor, int stages,
                  std::vector<PlanRequest>& requests) {
  for (const int micro_batch : micro_batches(space, job.training.global_batch)) {
    if (job.training.global_batch % micro_batch != 0) continue;
    const PlanRequest request{.tensor_parallel = tensor,
                              .pipeline_parallel = stages,
                              .schedule = "1f1b",
                              .micro_batch = micro_batch};
    for (PlanRequest& variant : variants_of(request, space)) {
      requests.push_back(std::move(variant));
    }
  }
}

std::vector<PlanRequest> replica_requests(const GroupedJob& job,
                                          const GroupSearchOptions& options) {
  const SearchSpace& space = options.space;
  std::vector<PlanRequest> requests;
  int smallest = std::numeric_limits<int>::max(), devices = 0;
  for (const Cluster& group : job.cluster.groups) {
    smallest = std::min(smallest, group.devices());
    devices += group.devices();
  }
  for (const int tensor : divisors(job.cluster.groups.front().devices_per_node)) {
    if (!space.tensor_parallel.has(tensor)) continue;
    for (const int stages : divisors(smallest / tensor)) {
      const bool allowed = space.pipeline_parallel.has(stages) && may_have_stages(options, stages);
      if (!allowed || !space.data_parallel.has(devices / (tensor * stages))) continue;
      add_requests(job, space, tensor, stages, requests);
    }
  }
  return requests;
}

}  // namespace

bool has_replicas(const GroupedJob& job, const GroupSearchOptions& options) {
  return !replica_requests(job, options).empty();
}

std::optional<GroupedPlan> find_replicas(const GroupedJob& job, GroupWatch& watch) {
  const Team team = team_of(job, watch.options());
  const std::vector<PlanRequest> requests = replica_requests(job, watch.options());
  std::optional<GroupedPlan> best;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (watch.is_over(static_cast<double>(i) / static_cast<double>(requests.size()))) break;
    auto plan = best_split(team, requests[i]);
    if (plan && (!best || is_better(*plan, *best))) best = std::move(plan);
  }
  return best;
}

}  // namespace trainyard
