#include "planner/heterogeneous/replicas.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "model/bisection.h"
#include "model/cost/collective.h"
#include "model/cost/estimate.h"
#include "planner/heterogeneous/batch_split.h"
#include "planner/heterogeneous/pricer.h"
#include "planner/heterogeneous/space.h"
#include "planner/heterogeneous/team.h"
#include "planner/heterogeneous/value.h"
#include "planner/search/enumeration.h"

namespace trainyard {
namespace {

// A training whose batch has one micro-batch for each replica of this group: a replica may have any
// number of micro-batches, so that the whole batch need not divide by the replicas.
Training training_of(const Job& job, const PlanRequest& request) {
  Training training = job.training;
  const int degrees = request.tensor_parallel * request.pipeline_parallel;
  const int replicas = std::max(1, job.cluster.devices() / degrees);
  training.global_batch = std::int64_t{replicas} * request.micro_batch;
  return training;
}

// Prices one group's replicas, with the recomputation that is fastest for their number of
// micro-batches, or where memory is the only objective with the one that takes the least memory.
class ReplicaPricer {
 public:
  // Requires: `estimator` is of `job`.
  ReplicaPricer(const PreparedJob& job, const Estimator& estimator, const PlanRequest& request,
                const GroupSearchOptions& options)
      : job_(job),
        estimator_(estimator),
        by_memory_(options.objective == Objective::memory && !options.second) {
    const Job& j = job.job;
    const Training training = training_of(j, request);
    PlanRequest asked = request;
    asked.layers_per_stage = options.layers_per_stage;
    for (const RecomputeChoice& choice :
         recomputations(options.space, j.training.stack, request.pipeline_parallel)) {
      asked.recompute = choice.every_stage;
      asked.recompute_per_stage = choice.per_stage;
      auto plan = plan_if_legal(asked, j.model, j.cluster, training);
      if (plan && may_shard(options.space, *plan)) plans_.push_back(*std::move(plan));
    }
    repeats_layers_ = !by_memory_ && options.space.recompute.empty() && is_legal() &&
                      plans_.front().recompute.mode == RecomputeMode::none;
  }

  bool is_legal() const { return !plans_.empty(); }
  int replicas() const { return plans_.front().data_parallel; }

  // From here on no device takes more than this share of its memory.
  void keep_within(double most) { most_ = most * job_.job.cluster.usable_memory(); }

  // Time of the step with so many micro-batches a replica; infinite where no recomputation fits.
  Seconds price(int microbatches) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    Seconds best(kInfinite);
    peak_ = Bytes(kInfinite);
    for (Plan& plan : plans_) {
      plan.microbatches = microbatches;
      take_if_better(plan, best);
    }
    if (repeats_layers_) take_fewest_layers(microbatches, best);
    return best;
  }
  const Plan& chosen() const { return chosen_; }
  const std::vector<StageParameters>& held() const { return held_; }
  const GroupShare& share() const { return share_; }
  const Breakdown& breakdown() const { return breakdown_; }

 private:
  bool is_better(const Estimate& priced, Seconds best) const {
    if (!by_memory_) return priced.step_time < best;
    return std::tuple(priced.peak_memory, priced.step_time) < std::tuple(peak_, best);
  }

  bool fits(const Plan& plan) {
    estimator_.estimate(plan, scratch_);
    return scratch_.feasible && scratch_.peak_memory <= most_;
  }

  void take_if_better(const Plan& plan, Seconds& best) {
    if (!fits(plan) || !is_better(scratch_, best)) return;
    best = scratch_.step_time;
    chosen_ = plan;
    peak_ = scratch_.peak_memory;
    share_ = share_of_whole(job_, plan, scratch_);
    breakdown_ = scratch_.breakdown;
    held_ = scratch_.held;
  }

  // Where nothing recomputed does not fit, takes full recomputation of the fewest layers of each
  // stage that fit: with more layers a stage holds less and takes longer.
  void take_fewest_layers(int microbatches, Seconds& best) {
    Plan plan = plans_.front();
    plan.microbatches = microbatches;
    if (fits(plan)) return;
    const auto repeating = [&plan](int layers) -> const Plan& {
      plan.recompute = {RecomputeMode::full, layers};
      return plan;
    };
    const int all = job_.job.model.layers;
    const int fewest = first_where(1, all, [&](int layers) { return fits(repeating(layers)); });
    if (fewest < all) take_if_better(repeating(fewest), best);
  }

  const PreparedJob& job_;
  const Estimator& estimator_;
  bool by_memory_;
  bool repeats_layers_ = false;
  std::vector<Plan> plans_;
  Plan chosen_;
  Bytes peak_;
  Bytes most_{std::numeric_limits<double>::infinity()};
  GroupShare share_;
  Breakdown breakdown_;
  std::vector<StageParameters> held_;
  Estimate scratch_;
};

// Links of a ring over all groups, each as slow as the slowest boundary.
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
  links.pipeline = links_over(least, static_cast<int>(groups));
  return links;
}

// Time of the all-reduce of the gradients over the groups: each group has reduced its gradients
// among its own replicas, and each device adds its shard up with those of the other groups. The
// shards are largest in the group with the fewest replicas, which `fewest` and `held` are of.
Seconds gradient_exchange(const GroupedJob& job, const PreparedJob& prepared, const Plan& fewest,
                          const std::vector<StageParameters>& held) {
  double most = 0;
  for (const StageParameters& stage : held) most = std::max(most, stage.dense + stage.experts);
  const Bytes shard(most * reduced_gradient_bytes(prepared.job.training) / fewest.data_parallel);
  const PlanLinks links = across_all(job, prepared, fewest);
  return collective_time(CollectiveOperation::all_reduce, links.pipeline, shard, links);
}

// What all searches of a team share.
struct Team {
  const GroupedJob& job;
  const GroupSearchOptions& options;
  std::vector<PreparedJob> own;
  std::deque<Estimator> estimators;  // of `own`
  std::vector<PreparedJob> whole;    // of each group as many nodes as all have; for goodput

  std::span<const PreparedJob> valued() const { return whole.empty() ? own : whole; }
};

Team team_of(const GroupedJob& job, const GroupSearchOptions& options) {
  std::vector<int> nodes;
  for (const Cluster& group : job.cluster.groups) nodes.push_back(group.nodes);
  Team team{.job = job,
            .options = options,
            .own = prepared_groups(job, nodes),
            .estimators = {},
            .whole = {}};
  for (const PreparedJob& own : team.own) team.estimators.emplace_back(own);
  if (needs_goodput(options)) {
    const int all = std::accumulate(nodes.begin(), nodes.end(), 0);
    team.whole = prepared_groups(job, std::vector<int>(nodes.size(), all));
  }
  return team;
}

using Split = std::vector<int>;  // micro-batches of a replica of each group

GroupedPlan on_all(const Team& team) {
  GroupedPlan plan{.use = GroupUse::replicas, .feasible = true};
  plan.order.resize(team.own.size());
  std::iota(plan.order.begin(), plan.order.end(), std::size_t{0});
  return plan;
}

// The group that ends last decides the step.
void take_if_last(Seconds end, const Breakdown& breakdown, GroupedPlan& plan) {
  if (end <= plan.step_time) return;
  plan.step_time = end;
  plan.breakdown = breakdown;
}

// Adds the exchange of gradients over the boundary, which is fully exposed.
void add_boundary(GroupedPlan& plan) {
  plan.step_time += *plan.boundary;
  plan.breakdown.data_parallel += *plan.boundary;
}

// Requires: the split fits, so that every group has a share.
GroupedPlan priced(const Team& team, std::vector<ReplicaPricer>& groups, const Split& split) {
  GroupedPlan plan = on_all(team);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    take_if_last(groups[g].price(split[g]), groups[g].breakdown(), plan);
    plan.shares.push_back(groups[g].share());
  }
  plan.plan = groups.front().chosen();
  const auto fewest = std::min_element(
      groups.begin(), groups.end(),
      [](const ReplicaPricer& a, const ReplicaPricer& b) { return a.replicas() < b.replicas(); });
  plan.boundary = gradient_exchange(team.job, team.own.front(), fewest->chosen(), fewest->held());
  add_boundary(plan);
  set_value(team.job.cluster, team.valued(), team.options, plan);
  return plan;
}

// `split` after `moves` of the smallest moves of micro-batches that keep the batch whole; empty: a
// group would be left without any.
Split moved(const std::vector<ReplicaPricer>& groups, Split split, std::size_t from, std::size_t to,
            int moves) {
  const int sequences = std::lcm(groups[from].replicas(), groups[to].replicas());
  const int fewer = moves * (sequences / groups[from].replicas());
  if (from == to || split[from] <= fewer) return {};
  split[from] -= fewer;
  split[to] += moves * (sequences / groups[to].replicas());
  return split;
}

constexpr Seconds kNoPrice(std::numeric_limits<double>::infinity());

bool fits(std::vector<ReplicaPricer>& groups, const Split& split) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].price(split[g]) == kNoPrice) return false;
  }
  return true;
}

// Makes the moves from any group to any other that make the plan better; false: none does.
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

int most_moves(const Split& split) {
  const int most = *std::max_element(split.begin(), split.end());
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(most)));
}

// Micro-batches move from group to group, many at first, while that makes the plan better.
void refine(const Team& team, std::vector<ReplicaPricer>& groups, Split split, GroupWatch& watch,
            double done, GroupedPlan& best) {
  for (int moves = most_moves(split); moves > 0 && !watch.is_over(done);) {
    if (!move_between(team, groups, moves, split, best)) moves /= 2;
  }
}

// A pricer for each group; empty where some group cannot have such replicas.
std::vector<ReplicaPricer> pricers_of(const Team& team, const PlanRequest& request) {
  std::vector<ReplicaPricer> groups;
  groups.reserve(team.own.size());
  for (std::size_t g = 0; g < team.own.size(); ++g) {
    groups.emplace_back(team.own[g], team.estimators[g], request, team.options);
    if (!groups.back().is_legal()) return {};
  }
  return groups;
}

// The split of the shortest step; empty: there is none, or none that fits and steps in less than
// `worth`.
Split fastest_split(const Team& team, const PlanRequest& request,
                    std::vector<ReplicaPricer>& groups, Seconds worth = kNoPrice) {
  std::vector<SplitGroup> times;
  times.reserve(groups.size());
  for (ReplicaPricer& group : groups) {
    times.push_back(
        {group.replicas(), [&group](int microbatches) { return group.price(microbatches); }});
  }
  return split_batch(times, team.job.training.global_batch / request.micro_batch, worth);
}

// Whether another split than that of the shortest step may be the best: by energy, and where a
// straggler makes the kernels of a stage count beside the step.
bool has_other_best_splits(const GroupSearchOptions& options) {
  const bool robust = options.valuation.robust && options.objective != Objective::memory;
  return options.objective == Objective::energy ||
         (robust && options.valuation.reliability.stragglers);
}

// A search of the best of all requests.
class ReplicaSearch {
 public:
  ReplicaSearch(const Team& team, double worth) : team_(team), worth_(worth) {}

  // Takes the best split where it beats the best so far. Returns whether one fits; true where that
  // is not known.
  bool take(const PlanRequest& request, GroupWatch& watch, double done) {
    std::vector<ReplicaPricer> groups = pricers_of(team_, request);
    if (groups.empty()) return true;  // that none is legal says nothing of other sizes
    Split split = fastest_split(team_, request, groups, limit());
    if (split.empty()) return fits(groups, Split(groups.size(), 1));
    GroupedPlan plan = priced(team_, groups, split);
    if (has_other_best_splits(team_.options)) refine(team_, groups, split, watch, done, plan);
    if (!best_ || is_better(plan, *best_)) best_ = std::move(plan);
    return true;
  }
  std::optional<GroupedPlan>& best() { return best_; }

 private:
  // A longer step is of no interest; known only where the value is never below the step.
  Seconds limit() const {
    if (!is_at_least_step(team_.options.objective)) return kNoPrice;
    return Seconds(best_ ? std::min(worth_, best_->value) : worth_);
  }

  const Team& team_;
  const double worth_;
  std::optional<GroupedPlan> best_;
};

// Every split that differs from this one by some moves from one group to another, many moves first.
std::vector<Split> neighbours_of(const std::vector<ReplicaPricer>& groups, const Split& split) {
  std::vector<Split> neighbours;
  for (int moves = most_moves(split); moves > 0; moves /= 2) {
    for (std::size_t pair = 0; pair < groups.size() * groups.size(); ++pair) {
      Split other = moved(groups, split, pair / groups.size(), pair % groups.size(), moves);
      if (!other.empty()) neighbours.push_back(std::move(other));
    }
  }
  return neighbours;
}

// Pareto local search from a split: offers the neighbours of every split that enters the front.
void explore(const Team& team, std::vector<ReplicaPricer>& groups, const Split& first,
             GroupWatch& watch, double done, GroupedFront& front) {
  std::set<Split> seen = {first};
  std::vector<Split> open = {first};
  while (!open.empty() && !watch.is_over(done)) {
    const Split split = std::move(open.back());
    open.pop_back();
    for (Split& other : neighbours_of(groups, split)) {
      if (!seen.insert(other).second || !fits(groups, other)) continue;
      if (front.offer(priced(team, groups, other))) open.push_back(std::move(other));
    }
  }
}

// Offers the fastest split and its neighbours, on all memory and, where memory is an objective, on
// less and less of it. Returns whether a plan fits.
bool offer_splits(const Team& team, const PlanRequest& request, GroupWatch& watch, double done,
                  GroupedFront& front) {
  std::vector<ReplicaPricer> groups = pricers_of(team, request);
  if (groups.empty()) return true;  // that none is legal says nothing of other sizes
  double most = 1;
  bool fits = false;
  do {
    for (ReplicaPricer& group : groups) group.keep_within(most);
    const Split split = fastest_split(team, request, groups);
    if (split.empty()) return fits;
    fits = true;
    const GroupedPlan plan = priced(team, groups, split);
    front.offer(plan);
    explore(team, groups, split, watch, done, front);
    most = next_memory(team.options, front, most, plan.fullness, values_of(plan));
  } while (most > 0 && !watch.is_over(done));
  return fits;
}

// Adds the requests with t and p and all else that is searched, each with its micro-batches in
// ascending order.
void add_requests(const GroupedJob& job, const SearchSpace& space, int tensor, int stages,
                  std::vector<PlanRequest>& requests) {
  const std::vector<int> sizes = micro_batches(space, job.training.global_batch);
  const PlanRequest request{
      .tensor_parallel = tensor, .pipeline_parallel = stages, .schedule = "1f1b"};
  for (PlanRequest& variant : variants_of(job, request, space)) {
    for (const int micro_batch : sizes) {
      variant.micro_batch = micro_batch;
      requests.push_back(variant);
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
  const std::vector<PlanRequest> requests = replica_requests(job, options);
  if (options.space.sharding_group.empty() || requests.empty()) return !requests.empty();
  const Team team = team_of(job, options);
  return std::ranges::any_of(
      requests, [&team](const PlanRequest& request) { return !pricers_of(team, request).empty(); });
}

namespace {

// Calls `visit` for all degrees that may fit, with the fraction that is done, until the watch says
// stop. `visit` returns whether a plan of these degrees fits.
template <typename Visit>
void for_requests(const GroupedJob& job, GroupWatch& watch, const Visit& visit) {
  const std::vector<PlanRequest> requests = replica_requests(job, watch.options());
  FittingSizes sizes;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(requests.size());
    if (watch.is_over(done)) return;
    if (!sizes.may_fit(requests[i].micro_batch)) continue;
    if (!visit(requests[i], done)) sizes.last_was_too_large();
  }
}

}  // namespace

std::optional<GroupedPlan> find_replicas(const GroupedJob& job, GroupWatch& watch, double worth) {
  const Team team = team_of(job, watch.options());
  ReplicaSearch search(team, worth);
  for_requests(job, watch, [&](const PlanRequest& request, double done) {
    return search.take(request, watch, done);
  });
  return std::move(search.best());
}

void find_replicas(const GroupedJob& job, GroupWatch& watch, GroupedFront& front) {
  const Team team = team_of(job, watch.options());
  for_requests(job, watch, [&](const PlanRequest& request, double done) {
    return offer_splits(team, request, watch, done, front);
  });
}

Expected<GroupedPlan> price_replicas(const GroupedJob& job,
                                     const std::vector<NamedReplicas>& groups,
                                     const GroupSearchOptions& options) {
  const Team team = team_of(job, options);
  GroupedPlan found = on_all(team);
  Plan fewest;
  std::vector<StageParameters> held;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Job& own = team.own[g].job;
    auto plan =
        make_plan(groups[g].request, own.model, own.cluster, training_of(own, groups[g].request));
    if (!plan) return tl::unexpected(plan.error());
    plan->microbatches = groups[g].microbatches;
    const Estimate priced = estimate(team.own[g], *plan);
    found.shares.push_back(share_of_whole(team.own[g], *plan, priced));
    take_if_last(priced.step_time, priced.breakdown, found);
    found.feasible = found.feasible && priced.feasible;
    if (g == 0) found.plan = *plan;
    if (g > 0 && fewest.data_parallel <= plan->data_parallel) continue;
    fewest = *std::move(plan);
    held = priced.held;
  }
  found.boundary = gradient_exchange(job, team.own.front(), fewest, held);
  add_boundary(found);
  set_value(job.cluster, team.valued(), options, found);
  return found;
}

}  // namespace trainyard
