#include "planner/unlike_pipeline.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "model/cost/estimate.h"
#include "model/cost/traffic.h"
#include "model/schedule/schedule.h"
#include "planner/allocation.h"
#include "planner/enumeration.h"
#include "planner/request.h"
#include "planner/unlike_space.h"
#include "planner/unlike_value.h"

namespace trainyard {
namespace {

std::size_t stage_index(int index) { return static_cast<std::size_t>(index); }

int nodes_of_all(const GroupedJob& job) {
  int nodes = 0;
  for (const Cluster& group : job.cluster.groups) nodes += group.nodes;
  return nodes;
}

// The best of those that fit.
void take_better(GroupedPlan plan, std::optional<GroupedPlan>& best) {
  if (plan.feasible && (!best || is_better(plan, *best))) best = std::move(plan);
}

// What a device computes of a step that `priced` tells of, as one of these stages.
Seconds busy_of(const Plan& plan, const Estimate& priced, std::size_t first, int stages) {
  Seconds busy;
  for (std::size_t stage = first; stage < first + stage_index(stages); ++stage) {
    const Breakdown& parts = priced.stages[stage].exposed;
    busy += (parts.compute + parts.embedding_head + parts.recompute) / stages;
  }
  return busy * plan.microbatches + priced.breakdown.optimizer;
}

class PipelinePricer {
 public:
  using Order = std::vector<std::size_t>;

  PipelinePricer(const GroupedJob& job, const GroupSearchOptions& options)
      : job_(job),
        options_(options),
        whole_(
            prepared_groups(job, std::vector<int>(job.cluster.groups.size(), nodes_of_all(job)))),
        devices_(whole_.front().job.cluster.devices()) {}

  std::optional<Plan> legal(const PlanRequest& request) const {
    std::optional<Plan> plan;
    for (const PreparedJob& prepared : whole_) {
      const Job& j = prepared.job;
      auto own = plan_if_legal(request, j.model, j.cluster, j.training);
      if (!own) return std::nullopt;
      if (plan && !own->overlap.expert_parallel) plan->overlap.expert_parallel = false;
      if (!plan) plan = std::move(own);
    }
    return plan && may_shard(options_.space, *plan) ? plan : std::nullopt;
  }

  bool has_named_layers() const { return !options_.layers_per_stage.empty(); }

  // The plan's degrees with the layers that each stage takes at its best, or those that are named,
  // under every recomputation of the space. Where memory is the objective, none fuller than `most`.
  std::vector<Plan> dealt(const Plan& degrees, const Order& order, double most) const;
  GroupedPlan price(const Plan& plan, const Order& order) const;

 private:
  int stages_of(const Plan& plan, std::size_t group) const {
    return job_.cluster.groups[group].devices() * plan.pipeline_parallel / devices_;
  }

  static void take_stage(const Estimate& priced, std::size_t stage, Bytes capacity,
                         GroupShare& share, GroupedPlan& result) {
    const Bytes peak = priced.stages[stage].memory.at_peak.device();
    ++share.stages;
    share.layers += priced.held[stage].layers;
    share.peak_memory = std::max(share.peak_memory, peak);
    result.feasible = result.feasible && peak <= capacity;
  }

  // Between the last stage of one group and the first of the next.
  struct Crossing {
    struct Side {
      std::size_t stage = 0;
      Seconds send;  // of a device, over the boundary
      Seconds more;  // than inside its group
    };
    Side before, behind;
    bool overlapped = false;
    double slowdown = 0;  // of compute beside an overlapped send

    // The stage before sends activations, the one behind gradients; where sends are overlapped,
    // both slow what both compute beside them.
    void add_to(std::vector<PassTimes>& passes) const {
      if (!overlapped) {
        passes[before.stage].forward += before.more;
        passes[behind.stage].input_gradient += behind.more;
        return;
      }
      for (const Side& side : {before, behind}) {
        passes[side.stage].forward += side.more * slowdown;
        passes[side.stage].input_gradient += side.more * slowdown;
      }
    }
    Seconds added_to(const Side& side) const {
      return overlapped ? 2 * side.more * slowdown : side.more;
    }
  };
  Crossing::Side side_of(std::size_t group, std::size_t other, std::size_t stage,
                         const Plan& plan) const;
  std::vector<Crossing> crossings(const Plan& plan, const Order& order) const;
  static Seconds pace_of(const std::vector<PassTimes>& passes,
                         const std::vector<Crossing>& crossed);
  void add_times(const std::vector<Estimate>& all, std::vector<PassTimes> passes,
                 GroupedPlan& result) const;
  Seconds ends_of(const std::vector<Estimate>& all, const Plan& plan) const;

  std::optional<AllocationProblem> problem_of(const Plan& plan, const Order& order) const;
  std::optional<Allocation> allocate(const AllocationProblem& problem, const Plan& plan,
                                     const Order& order, double most) const;

  const GroupedJob& job_;
  const GroupSearchOptions& options_;
  std::vector<PreparedJob> whole_;  // a cluster of all nodes for each kind of them
  int devices_;
};

PipelinePricer::Crossing::Side PipelinePricer::side_of(std::size_t group, std::size_t other,
                                                       std::size_t stage, const Plan& plan) const {
  const PreparedJob& own = whole_[group];
  PlanLinks links = plan_links(own, plan);
  const Seconds near = send_time(own, plan, links);
  const auto [bandwidth, latency] = boundary_between(job_.cluster, group, other);
  links.pipeline = {.size = 2,
                    .ranks_per_domain = 1,
                    .domains = 2,
                    .inside = bandwidth,
                    .inside_pair = bandwidth,
                    .across = bandwidth,
                    .across_all_to_all = bandwidth,
                    .across_latency = latency};
  const Seconds far = send_time(own, plan, links);
  return {stage, far, std::max(Seconds(0), far - near)};
}

std::vector<PipelinePricer::Crossing> PipelinePricer::crossings(const Plan& plan,
                                                                const Order& order) const {
  std::vector<Crossing> all;
  std::size_t stage = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    stage += stage_index(stages_of(plan, order[i]));
    all.push_back({side_of(order[i], order[i + 1], stage - 1, plan),
                   side_of(order[i + 1], order[i], stage, plan), plan.overlap.pipeline,
                   job_.training.stack.overlap_slowdown});
  }
  return all;
}

GroupedPlan PipelinePricer::price(const Plan& plan, const Order& order) const {
  GroupedPlan result{.use = GroupUse::pipeline, .order = order, .plan = plan, .feasible = true};
  result.shares.resize(whole_.size());
  std::vector<Estimate> all(whole_.size());
  std::vector<PassTimes> passes;
  passes.reserve(stage_index(plan.pipeline_parallel));
  for (const std::size_t group : order) {
    estimate(whole_[group], plan, all[group]);
    GroupShare& share = result.shares[group];
    share.replicas = plan.data_parallel;
    share.microbatches = plan.microbatches;
    share.busy = busy_of(plan, all[group], passes.size(), stages_of(plan, group));
    for (int i = stages_of(plan, group); i > 0; --i) {
      const std::size_t stage = passes.size();
      take_stage(all[group], stage, whole_[group].job.cluster.device.memory, share, result);
      passes.push_back(all[group].passes[stage]);
    }
  }
  add_times(all, std::move(passes), result);
  set_value(job_.cluster, whole_, options_, result);
  return result;
}

// 1F1B keeps one micro-batch more at a stage than at the next: k stages in a row let k of them pass
// while one goes there and back. The slowest of all rows with a boundary inside.
Seconds PipelinePricer::pace_of(const std::vector<PassTimes>& passes,
                                const std::vector<Crossing>& crossed) {
  std::vector<Seconds> sends(passes.size());  // there and back, from the stage before
  for (const Crossing& crossing : crossed) {
    sends[crossing.behind.stage] = crossing.before.send + crossing.behind.send;
  }
  Seconds pace;
  for (std::size_t first = 0; first < passes.size(); ++first) {
    Seconds sum = passes[first].total();
    for (std::size_t last = first + 1; last < passes.size(); ++last) {
      sum += passes[last].total() + sends[last];
      pace = std::max(pace, sum / static_cast<double>(last - first + 1));
    }
  }
  return pace;
}

// What crosses and is overlapped shows in fill and drain, and paces the pipeline where
// micro-batches wait for it.
void PipelinePricer::add_times(const std::vector<Estimate>& all, std::vector<PassTimes> passes,
                               GroupedPlan& result) const {
  const Plan& plan = result.plan;
  const PipelineShape shape = pipeline_shape(plan);
  const Seconds without = longest_span(*plan.schedule, shape, passes);
  const std::vector<Crossing> crossed = crossings(plan, result.order);
  for (const Crossing& crossing : crossed) crossing.add_to(passes);
  Seconds span = longest_span(*plan.schedule, shape, passes);
  if (plan.overlap.pipeline) {
    for (const Crossing& crossing : crossed) span += crossing.before.more + crossing.behind.more;
    span = std::max(span, plan.microbatches * pace_of(passes, crossed));
  }
  result.boundary = span - without;
  result.step_time = span * slowest_rank_factor(job_.training.stack, plan) +
                     job_.training.stack.step_overhead + ends_of(all, plan);
}

// Once a step and in fill and drain: what the groups' own estimates have beside their span.
Seconds PipelinePricer::ends_of(const std::vector<Estimate>& all, const Plan& plan) const {
  Seconds ends;
  for (const Estimate& one : all) {
    const Seconds span = longest_span(*plan.schedule, pipeline_shape(plan), one.passes);
    ends = std::max(ends, one.step_time - one.breakdown.other - span);
  }
  return ends;
}

Seconds layer_times(const AllocationProblem& problem) {
  Seconds sum;
  for (const AllocatedLayer& layer : problem.layers) sum += layer.time;
  return sum;
}

// The layers on the first group's devices as the reference; the others' are slower or faster by one
// factor each.
std::optional<AllocationProblem> PipelinePricer::problem_of(const Plan& plan,
                                                            const Order& order) const {
  auto problem = allocation_problem(whole_[order.front()], plan);
  if (!problem) return std::nullopt;
  const Seconds reference = layer_times(*problem);
  std::size_t stage = stage_index(stages_of(plan, order.front()));
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto own = allocation_problem(whole_[order[i]], plan);
    if (!own) return std::nullopt;
    const double slowness = layer_times(*own) / reference;
    const std::size_t end = stage + stage_index(stages_of(plan, order[i]));
    for (; stage < end; ++stage) {
      problem->stages[stage] = own->stages[stage];
      problem->stages[stage].slowness = slowness;
    }
  }
  for (const Crossing& crossing : crossings(plan, order)) {
    for (const auto& side : {crossing.before, crossing.behind}) {
      problem->stages[side.stage].time += crossing.added_to(side);
    }
  }
  return problem;
}

// Where memory is the objective, the fullest device as empty as can be, to a thousandth of its
// memory: by halving the share of it that may be taken.
std::optional<Allocation> PipelinePricer::allocate(const AllocationProblem& problem,
                                                   const Plan& plan, const Order& order,
                                                   double most) const {
  if (options_.objective != Objective::memory) return allocate_layers(problem);
  const auto within = [&](double share) {
    AllocationProblem smaller = problem;
    auto stage = smaller.stages.begin();
    for (const std::size_t group : order) {
      const Job& own = whole_[group].job;
      const Bytes kept =
          own.cluster.device.memory * ((1 - share) / (1 + own.training.stack.fragmentation));
      for (int i = stages_of(plan, group); i > 0; --i) (stage++)->capacity -= kept;
    }
    return allocate_layers(smaller);
  };
  constexpr double kNear = 1e-3;
  double share = std::min(1.0, most), least = 0;
  auto best = within(share);
  while (best && share - least > kNear) {
    const double middle = (least + share) / 2;
    auto found = within(middle);
    (found ? share : least) = middle;
    if (found) best = std::move(found);
  }
  return best;
}

// What is named is the same on every stage; else each stage chooses.
void restrict_to(const Recompute& named, AllocationProblem& problem) {
  problem.none = named.mode == RecomputeMode::none;
  problem.selective = named.mode == RecomputeMode::selective;
  problem.full = named.mode == RecomputeMode::full;
  problem.full_layers = named.full_layers > 0 ? named.full_layers : std::numeric_limits<int>::max();
}

// Spelled out, so that layers can be moved.
std::vector<int> even_layers(const Plan& degrees, int layers) {
  const LayersOfChunks even(degrees, layers);
  std::vector<int> all(static_cast<std::size_t>(degrees.pipeline_parallel));
  for (int stage = 0; auto& own : all) own = even[stage++];
  return all;
}

std::vector<Plan> PipelinePricer::dealt(const Plan& degrees, const Order& order,
                                        double most) const {
  std::vector<Plan> plans;
  const auto add = [&](const PlanRequest& request) {
    if (auto plan = legal(request)) plans.push_back(*std::move(plan));
  };
  const bool is_free = options_.space.recompute.empty();
  const auto problem = has_named_layers() ? std::nullopt : problem_of(degrees, order);
  if (problem && is_free) {
    if (const auto found = allocate(*problem, degrees, order, most)) {
      add(request_with(degrees, *found));
    }
    return plans;
  }
  const std::vector<int> layers = has_named_layers()
                                      ? options_.layers_per_stage
                                      : even_layers(degrees, whole_.front().job.model.layers);
  for (const RecomputeChoice& choice : recomputations(options_.space, degrees.pipeline_parallel)) {
    PlanRequest request = request_of(degrees);
    request.layers_per_stage = layers;
    if (problem && choice.per_stage.empty()) {
      AllocationProblem restricted = *problem;
      restrict_to(choice.every_stage, restricted);
      const auto found = allocate(restricted, degrees, order, most);
      if (!found) continue;
      request = request_with(degrees, *found);
    }
    request.recompute = choice.every_stage;
    request.recompute_per_stage = choice.per_stage;
    add(request);
  }
  return plans;
}

// ---- The degrees ---------------------------------------------------------------------------

// The micro-batches and expert degrees of t and D, with all else that the space names.
template <typename Visit>
void for_experts(const GroupedJob& job, const SearchSpace& space, int tensor, int data,
                 const Visit& visit) {
  for (const int micro_batch : micro_batches(space, job.training.global_batch / data)) {
    for (const int expert : divisors(std::max(job.model.experts, 1))) {
      if (tensor * data % expert != 0 || !space.expert_parallel.has(expert)) continue;
      const PlanRequest request{.tensor_parallel = tensor,
                                .schedule = "1f1b",
                                .data_parallel = data,
                                .expert_parallel = expert,
                                .micro_batch = micro_batch};
      for (const PlanRequest& variant : variants_of(request, space)) visit(variant);
    }
  }
}

// Degrees that all groups can have: t inside the node, D replicas, the rest stages of each.
std::vector<PlanRequest> pipeline_requests(const GroupedJob& job,
                                           const GroupSearchOptions& options) {
  const SearchSpace& space = options.space;
  std::vector<PlanRequest> requests;
  int common = 0, devices = 0;
  for (const Cluster& group : job.cluster.groups) {
    common = std::gcd(common, group.devices());
    devices += group.devices();
  }
  for (const int tensor : divisors(job.cluster.groups.front().devices_per_node)) {
    if (!space.tensor_parallel.has(tensor)) continue;
    for (const int data : divisors(common / tensor)) {
      const int stages = devices / (tensor * data);
      if (!space.data_parallel.has(data) || !space.pipeline_parallel.has(stages) ||
          !may_have_stages(options, stages) || job.training.global_batch % data != 0) {
        continue;
      }
      for_experts(job, space, tensor, data, [&](PlanRequest request) {
        request.pipeline_parallel = stages;
        requests.push_back(std::move(request));
      });
    }
  }
  return requests;
}

// Stages whose neighbours hold something else, on either side of them: where layers may move.
std::vector<std::size_t> ends_of_runs(const GroupedPlan& priced) {
  const Plan& plan = priced.plan;
  std::vector<std::size_t> group_of;
  for (const std::size_t g : priced.order) {
    group_of.insert(group_of.end(), stage_index(priced.shares[g].stages), g);
  }
  const auto alike = [&](std::size_t a, std::size_t b) {
    return group_of[a] == group_of[b] && plan.layers_per_stage[a] == plan.layers_per_stage[b] &&
           recompute_of(plan, static_cast<int>(a)) == recompute_of(plan, static_cast<int>(b));
  };
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < group_of.size(); ++i) {
    const bool inside = i > 0 && i + 1 < group_of.size() && alike(i - 1, i) && alike(i, i + 1);
    if (!inside) ends.push_back(i);
  }
  return ends;
}

// The plan with one layer moved; false: it is no better, and stays as it is.
bool move_layer(const PipelinePricer& pricer, std::size_t from, std::size_t to, GroupedPlan& best) {
  PlanRequest moved = request_of(best.plan);
  if (from == to || moved.layers_per_stage[from] == 0) return false;
  --moved.layers_per_stage[from];
  ++moved.layers_per_stage[to];
  const auto plan = pricer.legal(moved);
  if (!plan) return false;
  GroupedPlan priced = pricer.price(*plan, best.order);
  if (!priced.feasible || !is_better(priced, best)) return false;
  best = std::move(priced);
  return true;
}

// Layers move from a stage to another while that makes the plan better: what is dealt minimises a
// formula that the step of very unlike stages is only near, and knows no energy. Not where most
// stages differ from their neighbours: there are too many moves.
void refine(const PipelinePricer& pricer, GroupWatch& watch, GroupedPlan& best) {
  constexpr std::size_t kMostEnds = 24;
  for (bool better = true; better;) {
    better = false;
    const std::vector<std::size_t> ends = ends_of_runs(best);
    if (ends.size() > kMostEnds) return;
    for (const std::size_t from : ends) {
      if (watch.is_over(1)) return;
      for (const std::size_t to : ends) {
        const bool moved = move_layer(pricer, from, to, best);
        better = better || moved;
      }
    }
  }
}

// The best of all orders of the groups with these degrees, refined.
void refine_orders(const GroupedJob& job, const PipelinePricer& pricer, GroupWatch& watch,
                   GroupedPlan& best) {
  PlanRequest degrees = request_of(best.plan);
  degrees.layers_per_stage.clear();
  degrees.recompute_per_stage.clear();
  degrees.recompute = {};
  const Plan plan = pricer.legal(degrees).value();
  std::vector<std::size_t> order(job.cluster.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    for (const Plan& dealt : pricer.dealt(plan, order, 1)) {
      GroupedPlan other = pricer.price(dealt, order);
      if (!other.feasible) continue;
      refine(pricer, watch, other);
      if (is_better(other, best)) best = std::move(other);
    }
  } while (!watch.is_over(1) && std::next_permutation(order.begin(), order.end()));
}

// The same degrees and order with even layers and one recomputation.
std::optional<GroupedPlan> even_pipeline(const PipelinePricer& pricer, const SearchSpace& space,
                                         const GroupedPlan& best) {
  std::optional<GroupedPlan> result;
  PlanRequest even = request_of(best.plan);
  even.layers_per_stage.clear();
  for (const RecomputeChoice& choice : recomputations(space, even.pipeline_parallel)) {
    even.recompute = choice.every_stage;
    even.recompute_per_stage = choice.per_stage;
    if (const auto plan = pricer.legal(even)) take_better(pricer.price(*plan, best.order), result);
  }
  return result;
}

}  // namespace

std::vector<PreparedJob> prepared_groups(const GroupedJob& job, const std::vector<int>& nodes) {
  std::vector<PreparedJob> result;
  result.reserve(nodes.size());
  for (std::size_t g = 0; g < nodes.size(); ++g) {
    Cluster cluster = job.cluster.groups[g];
    cluster.nodes = nodes[g];
    result.push_back(prepare({job.model, std::move(cluster), job.training}));
  }
  return result;
}

bool has_pipelines(const GroupedJob& job, const GroupSearchOptions& options) {
  return !pipeline_requests(job, options).empty();
}

namespace {

// Through the groups in every order.
void take_best_order(const GroupedJob& job, const PipelinePricer& pricer, const Plan& plan,
                     GroupWatch& watch, double done, std::optional<GroupedPlan>& best) {
  std::vector<std::size_t> order(job.cluster.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    const double most = best ? best->fullness : 1;
    for (const Plan& dealt : pricer.dealt(plan, order, most)) {
      take_better(pricer.price(dealt, order), best);
    }
  } while (!watch.is_over(done) && std::next_permutation(order.begin(), order.end()));
}

}  // namespace

GroupedPipelines find_pipelines(const GroupedJob& job, GroupWatch& watch) {
  const GroupSearchOptions& options = watch.options();
  const PipelinePricer pricer(job, options);
  const std::vector<PlanRequest> requests = pipeline_requests(job, options);
  GroupedPipelines found;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(requests.size());
    if (watch.is_over(done)) break;
    const auto plan = pricer.legal(requests[i]);
    if (plan) take_best_order(job, pricer, *plan, watch, done, found.best);
  }
  if (!found.best || pricer.has_named_layers()) return found;
  if (!watch.is_over(1)) refine_orders(job, pricer, watch, *found.best);
  found.even = even_pipeline(pricer, options.space, *found.best);
  return found;
}

GroupedPlan price_pipeline(const GroupedJob& job, const PlanRequest& request,
                           const std::vector<std::size_t>& order,
                           const GroupSearchOptions& options) {
  const PipelinePricer pricer(job, options);
  return pricer.price(pricer.legal(request).value(), order);
}

}  // namespace trainyard
