#include "planner/unlike_groups.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "model/cost/collective.h"
#include "model/cost/estimate.h"
#include "model/cost/traffic.h"
#include "model/schedule/schedule.h"
#include "planner/allocation.h"
#include "planner/bound.h"
#include "planner/enumeration.h"
#include "planner/planner.h"
#include "planner/request.h"

namespace trainyard {
namespace {

std::size_t stage_index(int index) { return static_cast<std::size_t>(index); }

using Prepared = std::array<PreparedJob, kGroups>;

// A job for each group on `nodes` of its own nodes.
Prepared prepared_on(const GroupedJob& job, std::array<int, kGroups> nodes) {
  Prepared result;
  for (std::size_t g = 0; g < kGroups; ++g) {
    Cluster cluster = job.cluster.groups[g];
    cluster.nodes = nodes[g];
    result[g] = prepare({job.model, cluster, job.training});
  }
  return result;
}

PlanLinks across_boundary(const GroupedJob& job, const PreparedJob& prepared, const Plan& plan) {
  PlanLinks links = plan_links(prepared, plan);
  links.pipeline = {.size = 2,
                    .ranks_per_domain = 1,
                    .domains = 2,
                    .inside = job.cluster.boundary,
                    .inside_pair = job.cluster.boundary,
                    .across = job.cluster.boundary,
                    .across_all_to_all = job.cluster.boundary,
                    .across_latency = job.cluster.boundary_latency};
  return links;
}

// The fastest of those that fit.
void take_if_better(GroupedPlan plan, std::optional<GroupedPlan>& best) {
  if (plan.feasible && (!best || plan.step_time < best->step_time)) best = std::move(plan);
}

// ---- When to stop --------------------------------------------------------------------------

class Watch {
 public:
  explicit Watch(const GroupSearchOptions& options) : options_(options) {}

  void start_way() {
    const int ways_left = kGroupWays - ways_++;
    end_of_way_ = elapsed() + (options_.time_limit - elapsed()) / ways_left;
  }
  // Whether this way is to end; `done`: how much of it was looked at.
  bool is_over(double done) {
    if (options_.progress) options_.progress((ways_ - 1 + done) / kGroupWays);
    const bool late = options_.time_limit > Seconds(0) && elapsed() >= end_of_way_;
    stopped_ = stopped_ || late || interrupted();
    return late || interrupted();
  }
  bool interrupted() const { return options_.interrupted != nullptr && *options_.interrupted; }
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

  // For a search of one group that takes the whole of this way.
  SearchOptions search_options() const {
    SearchOptions options{.top = 1, .interrupted = options_.interrupted};
    // Of a limit that is over there is a little left: 0 would be none.
    constexpr Seconds kLeast(1e-3);
    if (options_.time_limit > Seconds(0)) {
      options.time_limit = std::max(kLeast, end_of_way_ - elapsed());
    }
    if (options_.progress) {
      options.progress = [this](double done) {
        options_.progress((ways_ - 1 + done) / kGroupWays);
      };
    }
    return options;
  }

 private:
  static constexpr int kGroupWays =
      4;  // either group alone, a pipeline through both, replicas on each
  using Clock = std::chrono::steady_clock;

  Seconds elapsed() const {
    return Seconds(std::chrono::duration<double>(Clock::now() - start_).count());
  }

  const GroupSearchOptions& options_;
  const Clock::time_point start_ = Clock::now();
  Seconds end_of_way_;
  int ways_ = 0;
  bool stopped_ = false;
};

// ---- A pipeline through both ---------------------------------------------------------------

class PipelinePricer {
 public:
  explicit PipelinePricer(const GroupedJob& job)
      : job_(job), whole_(prepared_on(job, {both(job), both(job)})) {}

  int devices(std::size_t group) const { return job_.cluster.groups[group].devices(); }
  const PreparedJob& whole(std::size_t group) const { return whole_[group]; }

  std::optional<Plan> legal(const PlanRequest& request) const {
    for (const PreparedJob& prepared : whole_) {
      const Job& j = prepared.job;
      if (!plan_if_legal(request, j.model, j.cluster, j.training)) return std::nullopt;
    }
    const Job& j = whole_[0].job;
    return plan_if_legal(request, j.model, j.cluster, j.training);
  }

  int stages_of(const Plan& plan, std::size_t group) const {
    return devices(group) * plan.pipeline_parallel / (devices(0) + devices(1));
  }

  GroupedPlan price(const Plan& plan, std::size_t first) const {
    GroupedPlan result{.use = GroupUse::pipeline, .first = first, .plan = plan, .feasible = true};
    std::array<Estimate, kGroups> all;
    for (std::size_t g = 0; g < kGroups; ++g) estimate(whole_[g], plan, all[g]);
    std::vector<PassTimes> passes;
    passes.reserve(stage_index(plan.pipeline_parallel));
    const int first_stages = stages_of(plan, first);
    for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
      const std::size_t group = stage < first_stages ? first : 1 - first;
      take_stage(all[group], stage_index(stage), whole_[group].job.cluster.device.memory,
                 result.shares[group], result);
      passes.push_back(all[group].passes[stage_index(stage)]);
    }
    for (std::size_t g = 0; g < kGroups; ++g) {
      result.shares[g].replicas = plan.data_parallel;
      result.shares[g].microbatches = plan.microbatches;
    }
    add_times(all, plan, std::move(passes), result);
    return result;
  }

 private:
  static int both(const GroupedJob& job) {
    return job.cluster.groups[0].nodes + job.cluster.groups[1].nodes;
  }

  static void take_stage(const Estimate& priced, std::size_t stage, Bytes capacity,
                         GroupShare& share, GroupedPlan& result) {
    const Bytes peak = priced.stages[stage].memory.at_peak.device();
    ++share.stages;
    share.layers += priced.held[stage].layers;
    share.peak_memory = std::max(share.peak_memory, peak);
    result.feasible = result.feasible && peak <= capacity;
  }

  struct Crossing {
    Seconds send;  // of a device of the group, over the boundary
    Seconds more;  // than inside its group
  };
  Crossing crossing_of(std::size_t group, const Plan& plan) const {
    const PreparedJob& own = whole_[group];
    const Seconds near = send_time(own, plan, plan_links(own, plan));
    const Seconds far = send_time(own, plan, across_boundary(job_, own, plan));
    return {far, std::max(Seconds(0), far - near)};
  }

  // Sends over the boundary stand in the passes beside it, whole where the stack does not overlap
  // them. Else they slow the compute beside them, show in fill and drain, and pace the pipeline
  // where they take longer than it.
  void add_times(const std::array<Estimate, kGroups>& all, const Plan& plan,
                 std::vector<PassTimes> passes, GroupedPlan& result) const {
    const Crossing before = crossing_of(result.first, plan);
    const Crossing behind = crossing_of(1 - result.first, plan);
    const PipelineShape shape = pipeline_shape(plan);
    const Seconds without = longest_span(*plan.schedule, shape, passes);
    const int first_stages = stages_of(plan, result.first);
    const double shown = plan.overlap.pipeline ? job_.training.stack.overlap_slowdown : 1;
    add_to(passes[stage_index(first_stages - 1)], before.more * shown);
    add_to(passes[stage_index(first_stages)], behind.more * shown);
    Seconds span = longest_span(*plan.schedule, shape, passes);
    if (plan.overlap.pipeline) {
      const Seconds slowest = std::max(before.send, behind.send);
      span = std::max(span + before.more + behind.more, plan.microbatches * slowest);
    }
    result.boundary = span - without;
    result.step_time = span * slowest_rank_factor(job_.training.stack, plan) +
                       job_.training.stack.step_overhead + ends_of(all, plan);
  }

  static void add_to(PassTimes& passes, Seconds send) {
    passes.forward += send;
    passes.input_gradient += send;
  }

  // Once a step and in fill and drain: what the groups' own estimates have beside their span.
  Seconds ends_of(const std::array<Estimate, kGroups>& all, const Plan& plan) const {
    Seconds ends;
    for (const Estimate& one : all) {
      const Seconds span = longest_span(*plan.schedule, pipeline_shape(plan), one.passes);
      ends = std::max(ends, one.step_time - one.breakdown.other - span);
    }
    return ends;
  }

  const GroupedJob& job_;
  Prepared whole_;
};

Seconds layer_times(const AllocationProblem& problem) {
  Seconds sum;
  for (const AllocatedLayer& layer : problem.layers) sum += layer.time;
  return sum;
}

// The layers on the first group's devices as the reference; the others' are slower or faster by one
// factor.
std::optional<Plan> allocated(const PipelinePricer& pricer, const Plan& plan, std::size_t first) {
  auto problem = allocation_problem(pricer.whole(first), plan);
  const auto other = allocation_problem(pricer.whole(1 - first), plan);
  if (!problem || !other) return std::nullopt;
  const double slowness = layer_times(*other) / layer_times(*problem);
  for (int stage = pricer.stages_of(plan, first); stage < plan.pipeline_parallel; ++stage) {
    problem->stages[stage_index(stage)] = other->stages[stage_index(stage)];
    problem->stages[stage_index(stage)].slowness = slowness;
  }
  const auto dealt = allocate_layers(*problem);
  if (!dealt) return std::nullopt;
  return pricer.legal(request_with(plan, *dealt));
}

// The micro-batches and expert degrees of t and D.
template <typename Visit>
void for_experts(const GroupedJob& job, int tensor, int data, const Visit& visit) {
  for (const int micro_batch : {1, 2, 4}) {
    for (const int expert : divisors(std::max(job.model.experts, 1))) {
      if (tensor * data % expert != 0) continue;
      visit(PlanRequest{.tensor_parallel = tensor,
                        .schedule = "1f1b",
                        .data_parallel = data,
                        .expert_parallel = expert,
                        .micro_batch = micro_batch});
    }
  }
}

// Degrees that both groups can have: t inside the node, D replicas, the rest stages of either.
template <typename Visit>
void for_degrees(const GroupedJob& job, const Visit& visit) {
  const int a = job.cluster.groups[0].devices();
  const int b = job.cluster.groups[1].devices();
  for (const int tensor : divisors(job.cluster.groups[0].devices_per_node)) {
    for (const int data : divisors(a / tensor)) {
      if (b % (tensor * data) == 0) for_experts(job, tensor, data, visit);
    }
  }
}

void find_pipelines(const GroupedJob& job, Watch& watch, GroupedPlans& result) {
  watch.start_way();
  const PipelinePricer pricer(job);
  std::vector<PlanRequest> requests;
  for_degrees(job, [&requests](PlanRequest request) { requests.push_back(std::move(request)); });
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (watch.is_over(static_cast<double>(i) / static_cast<double>(requests.size()))) break;
    PlanRequest& request = requests[i];
    request.pipeline_parallel = (pricer.devices(0) + pricer.devices(1)) /
                                (request.tensor_parallel * *request.data_parallel);
    const auto plan = pricer.legal(request);
    if (!plan) continue;
    for (std::size_t first = 0; first < kGroups; ++first) {
      if (const auto dealt = allocated(pricer, *plan, first)) {
        take_if_better(pricer.price(*dealt, first), result.pipeline);
      }
    }
  }
  if (!result.pipeline) return;
  PlanRequest even = request_of(result.pipeline->plan);
  even.layers_per_stage.clear();
  even.recompute_per_stage.clear();
  for (const RecomputeMode mode :
       {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
    even.recompute = {mode, 0};
    if (const auto plan = pricer.legal(even)) {
      take_if_better(pricer.price(*plan, result.pipeline->first), result.even_pipeline);
    }
  }
}

// ---- Replicas on each ----------------------------------------------------------------------

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

// Each group has reduced its gradients among its own replicas; the shards that a device is left
// with are added up with those of the other group.
Seconds gradient_exchange(const GroupedJob& job, const PreparedJob& prepared,
                          const ReplicaPricer& narrow) {
  double most = 0;
  for (const StageParameters& stage : narrow.held()) {
    most = std::max(most, stage.dense + stage.experts);
  }
  const Bytes shard(most * job.training.stack.reduction_bytes / narrow.replicas());
  const PlanLinks links = across_boundary(job, prepared, narrow.chosen());
  return collective_time(CollectiveOperation::all_reduce, links.pipeline, shard, links);
}

// The number of micro-batches for the first group's replicas that ends both groups' steps together,
// by halving: one rises with it, the other falls.
void find_split(const GroupedJob& job, const Prepared& own, const PlanRequest& request,
                std::optional<GroupedPlan>& best) {
  std::array<ReplicaPricer, kGroups> groups = {ReplicaPricer(own[0], request),
                                               ReplicaPricer(own[1], request)};
  if (!groups[0].is_legal() || !groups[1].is_legal()) return;
  const std::int64_t all = job.training.global_batch / request.micro_batch;
  const int a = groups[0].replicas();
  const int b = groups[1].replicas();
  std::vector<int> splits;  // of the first group's replicas, where the rest divides
  for (int first = 1; std::int64_t{a} * first < all; ++first) {
    if ((all - std::int64_t{a} * first) % b == 0) splits.push_back(first);
  }
  const auto rest = [&](int first) {
    return static_cast<int>((all - std::int64_t{a} * first) / b);
  };
  const auto later = std::partition_point(splits.begin(), splits.end(), [&](int first) {
    return groups[0].price(first) < groups[1].price(rest(first));
  });
  for (auto split = later == splits.begin() ? later : later - 1;
       split != splits.end() && split <= later; ++split) {
    const Seconds longest = std::max(groups[0].price(*split), groups[1].price(rest(*split)));
    if (std::isinf(longest.value())) continue;
    GroupedPlan plan{.use = GroupUse::replicas, .plan = groups[0].chosen(), .feasible = true};
    plan.boundary = gradient_exchange(job, own[0], groups[a <= b ? 0 : 1]);
    plan.step_time = longest + plan.boundary;
    plan.shares = {groups[0].share(), groups[1].share()};
    take_if_better(std::move(plan), best);
  }
}

std::vector<PlanRequest> replica_requests(const GroupedJob& job) {
  std::vector<PlanRequest> requests;
  const int smaller = std::min(job.cluster.groups[0].devices(), job.cluster.groups[1].devices());
  for (const int tensor : divisors(job.cluster.groups[0].devices_per_node)) {
    for (const int stages : divisors(smaller / tensor)) {
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

void find_replicas(const GroupedJob& job, const Prepared& own, Watch& watch, GroupedPlans& result) {
  watch.start_way();
  const std::vector<PlanRequest> requests = replica_requests(job);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (watch.is_over(static_cast<double>(i) / static_cast<double>(requests.size()))) return;
    find_split(job, own, requests[i], result.replicas);
  }
}

// ---- One alone -----------------------------------------------------------------------------

void find_alone(const Prepared& own, Watch& watch, GroupedPlans& result) {
  for (std::size_t g = 0; g < kGroups; ++g) {
    watch.start_way();
    if (g > 0 && watch.is_over(0)) return;
    const PreparedJob& job = own[g];
    SearchResult found = search(job, watch.search_options(), analytic_evaluator(job));
    if (!found.optimal) watch.stop();
    if (found.plans.empty()) continue;
    const auto& [plan, priced, confirmation] = found.plans.front();
    GroupedPlan alone{.first = g, .plan = plan, .step_time = priced.step_time, .feasible = true};
    alone.shares[g] = {.stages = plan.pipeline_parallel,
                       .layers = job.job.model.layers,
                       .replicas = plan.data_parallel,
                       .microbatches = plan.microbatches,
                       .peak_memory = priced.peak_memory};
    result.alone[g] = std::move(alone);
  }
}

// Both groups at their peak, each with its share of the work.
Seconds bound_of_both(const Prepared& own) {
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

GroupedPlans plan_groups(const GroupedJob& job, const GroupSearchOptions& options) {
  GroupedPlans result;
  const Prepared own = prepared_on(job, {job.cluster.groups[0].nodes, job.cluster.groups[1].nodes});
  result.bound = bound_of_both(own);
  Watch watch(options);
  find_alone(own, watch, result);
  find_pipelines(job, watch, result);
  find_replicas(job, own, watch, result);
  result.complete = !watch.stopped();
  return result;
}

std::vector<GroupedPlan> in_order(const GroupedPlans& found) {
  std::vector<GroupedPlan> plans;
  for (const auto& plan :
       {found.pipeline, found.even_pipeline, found.replicas, found.alone[0], found.alone[1]}) {
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

GroupedPlan price_pipeline(const GroupedJob& job, const PlanRequest& request, std::size_t first) {
  const PipelinePricer pricer(job);
  return pricer.price(pricer.legal(request).value(), first);
}

}  // namespace trainyard
