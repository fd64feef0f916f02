#include "planner/heterogeneous/pricer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/cost/slowest_rank.h"
#include "planner/heterogeneous/space.h"
#include "planner/heterogeneous/team.h"
#include "planner/heterogeneous/value.h"
#include "planner/objective.h"
#include "planner/request.h"

namespace trainyard {
namespace {

std::size_t as_size(int index) { return static_cast<std::size_t>(index); }

// Compute time of a step on a device, averaged over these stages of the estimate `priced`.
Seconds busy_of(const Plan& plan, const Estimate& priced, const StagesOfGroup& of) {
  Seconds busy;
  for (int stage = of.first; stage < of.end; ++stage) {
    const Breakdown& parts = priced.stages[as_size(stage)].exposed;
    busy += (parts.compute + parts.embedding_head + parts.recompute) / (of.end - of.first);
  }
  return busy * plan.microbatches + priced.breakdown.optimizer;
}

void take_stage(const Plan& plan, const Estimate& priced, std::size_t stage, Bytes capacity,
                GroupShare& share, GroupedPlan& result) {
  const Bytes peak = priced.stages[stage].memory.at_peak.device();
  ++share.stages;
  share.layers += priced.held[stage].layers;
  if (peak > share.peak_memory) share.fullest_stage = static_cast<int>(stage);
  share.peak_memory = std::max(share.peak_memory, peak);
  share.kernels = std::max(share.kernels, kernels_of(plan, priced.stages[stage]));
  result.feasible = result.feasible && peak <= capacity;
}

Seconds layer_times(const AllocationProblem& problem) {
  Seconds sum;
  for (const AllocatedLayer& layer : problem.layers) sum += layer.time;
  return sum;
}

// What sends inside its group add to the passes of a stage.
Seconds sends_at(const StagesOfGroup& of, const Plan& plan, int stage) {
  return sends_in_passes(of.job->job.training.stack, plan, of.sends, stage).total();
}

// The least ratio of a layer's time here to that on the reference devices.
double least_slowness(const std::vector<AllocatedLayer>& layers,
                      const std::vector<AllocatedLayer>& reference) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    least = std::min(least, layers[i].time / reference[i].time);
  }
  return least;
}

// Restricts the problem to the named recomputation, the same on every stage.
void restrict_to(const Recompute& named, AllocationProblem& problem) {
  problem.none = named.mode == RecomputeMode::none;
  problem.selective = named.mode == RecomputeMode::selective;
  problem.full = named.mode == RecomputeMode::full;
  problem.full_layers = named.full_layers > 0 ? named.full_layers : std::numeric_limits<int>::max();
}

// The even layers as a list, so that layers can be moved.
std::vector<int> even_layers(const Plan& degrees, int layers) {
  const LayersOfChunks even(degrees, layers);
  std::vector<int> all(static_cast<std::size_t>(degrees.pipeline_parallel));
  for (int stage = 0; auto& own : all) own = even[stage++];
  return all;
}

// Merges a group's plan into the common one: the experts' all-to-all overlaps compute only where it
// does on the nodes of every group.
void take_common(std::optional<Plan> own, std::optional<Plan>& plan) {
  if (!own || !plan) {
    plan = std::move(own);
  } else if (!own->overlap.expert_parallel) {
    plan->overlap.expert_parallel = false;
  }
}

// A stage whose devices are slower than the reference by a factor. The times of its own layers,
// which are those on its devices, become those on the reference.
AllocatedStage as_slow(AllocatedStage stage, double slowness) {
  stage.slowness = slowness;
  for (AllocatedLayer& layer : stage.own) {
    for (Seconds* time : {&layer.time, &layer.selective, &layer.full}) *time /= slowness;
  }
  return stage;
}

}  // namespace

std::vector<PreparedJob> prepared_groups(const GroupedJob& job, const std::vector<int>& nodes) {
  std::vector<PreparedJob> result;
  result.reserve(nodes.size());
  for (std::size_t g = 0; g < nodes.size(); ++g) {
    result.push_back(
        prepare({job.model, with_nodes(job.cluster.groups[g], nodes[g]), job.training}));
  }
  return result;
}

PipelinePricer::PipelinePricer(const GroupedJob& job, const GroupSearchOptions& options)
    : job_(job),
      options_(options),
      whole_(prepared_groups(job, std::vector<int>(job.cluster.groups.size(), nodes_of_all(job)))),
      devices_(whole_.front().job.cluster.devices()) {
  std::vector<int> nodes;
  for (const Cluster& group : job.cluster.groups) nodes.push_back(group.nodes);
  own_ = prepared_groups(job, nodes);
  for (const PreparedJob& group : own_) estimators_.emplace_back(group);
}

std::optional<Plan> PipelinePricer::legal(const PlanRequest& request) const {
  std::optional<Plan> plan;
  for (const PreparedJob& prepared : whole_) {
    const Job& j = prepared.job;
    take_common(plan_if_legal(request, j.model, j.cluster, j.training), plan);
    if (!plan) return std::nullopt;
  }
  return may_shard(options_.space, *plan) ? plan : std::nullopt;
}

Expected<Plan> PipelinePricer::plan_of(const PlanRequest& request) const {
  std::optional<Plan> plan;
  for (const PreparedJob& prepared : whole_) {
    const Job& j = prepared.job;
    auto own = make_plan(request, j.model, j.cluster, j.training);
    if (!own) return tl::unexpected(own.error());
    take_common(*std::move(own), plan);
  }
  return *std::move(plan);
}

int PipelinePricer::stages_of(const Plan& plan, std::size_t group) const {
  return job_.cluster.groups[group].devices() * plan.pipeline_parallel / devices_;
}

std::vector<StagesOfGroup> PipelinePricer::stages_in(const Order& order, const Plan& plan) const {
  return stages_of_groups(job_.cluster.boundary, own_, plan, order);
}

GroupedPlan PipelinePricer::price(const Plan& plan, const Order& order) const {
  GroupedPlan result{.use = GroupUse::pipeline, .order = order, .plan = plan, .feasible = true};
  result.shares.resize(whole_.size());
  const std::vector<StagesOfGroup> groups = stages_in(order, plan);
  const GroupLinks ends =
      links_over(boundary_of(job_.cluster.boundary, *groups.front().job, *groups.back().job, plan));
  std::vector<Estimator::StagesOn> on;
  for (const StagesOfGroup& of : groups) {
    on.push_back({&estimators_[of.group], of.end - of.first, of.links, of.sends});
    on.back().links.ends = &ends;
  }
  Estimate priced;
  Estimator::estimate_pipeline(on, plan, priced);
  for (const StagesOfGroup& of : groups) {
    GroupShare& share = result.shares[of.group];
    share.replicas = plan.data_parallel;
    share.microbatches = plan.microbatches;
    share.busy = busy_of(plan, priced, of);
    const Bytes capacity = of.job->job.cluster.usable_memory();
    for (int stage = of.first; stage < of.end; ++stage) {
      take_stage(plan, priced, as_size(stage), capacity, share, result);
    }
  }
  add_times(priced, groups, result);
  set_value(job_.cluster, whole_, options_, result);
  return result;
}

// Sends over a boundary that are overlapped are exposed in fill and drain, and set the pace of the
// pipeline where micro-batches wait for them.
void PipelinePricer::add_times(const Estimate& priced, std::span<const StagesOfGroup> groups,
                               GroupedPlan& result) const {
  const Plan& plan = result.plan;
  const PipelineShape shape = pipeline_shape(plan);
  std::vector<PassTimes> passes = priced.passes;
  const Seconds without = longest_span(*plan.schedule, shape, passes);
  const std::vector<Crossing> crossed = crossings(job_.cluster.boundary, groups, plan);
  for (const Crossing& crossing : crossed) crossing.add_to(passes);
  Seconds span = longest_span(*plan.schedule, shape, passes);
  if (plan.overlap.pipeline) {
    for (const Crossing& crossing : crossed) span += crossing.in_ramps();
    span = std::max(span, plan.microbatches * pace_of(passes, crossed));
  }
  result.boundary = span - without;
  const auto pace =
      std::ranges::max_element(passes, {}, [](const PassTimes& stage) { return stage.total(); });
  const Seconds busiest = plan.microbatches * pace->total();
  // What a step takes outside its span; negative where more of the passes is hidden in fill and
  // drain than a step has behind them.
  const Seconds ends = priced.step_time - priced.breakdown.other - without;
  result.step_time = job_.training.stack.step_overhead + std::max(busiest, span + ends);
  set_breakdown(priced, static_cast<std::size_t>(pace - passes.begin()), result);
}

// The breakdown has the passes of the stage with the most to do, what is done once a step, and the
// communication between groups; the rest is bubble. What is lost to the slowest of all ranks comes
// on top.
void PipelinePricer::set_breakdown(const Estimate& priced, std::size_t stage,
                                   GroupedPlan& result) const {
  const Plan& plan = result.plan;
  const Breakdown& slowest = priced.stages[as_size(priced.slowest_stage)].exposed;
  const Stack& stack = job_.training.stack;
  Breakdown parts = priced.stages[stage].exposed;
  parts *= plan.microbatches;
  for (const auto once :
       {&Breakdown::data_parallel, &Breakdown::pipeline, &Breakdown::expert_parallel}) {
    parts.*once += priced.breakdown.*once - slowest.*once * plan.microbatches;
  }
  parts.pipeline += *result.boundary;
  parts.optimizer = priced.breakdown.optimizer;
  parts.other = stack.step_overhead;
  parts.bubble = Seconds(0);
  const Seconds waits = result.step_time - parts.total();
  parts.bubble = std::max(Seconds(0), waits);
  parts.pipeline += std::min(Seconds(0), waits);  // sends that run beside compute after all
  const Seconds lost = lost_to_slowest_rank(stack, plan, parts);
  parts.other += lost;
  result.step_time += lost;
  result.breakdown = parts;
}

PipelinePricer::Degrees PipelinePricer::degrees_of(const Plan& plan) const {
  Degrees degrees{.plan = plan, .of_groups = {}};
  if (has_named_layers()) return degrees;
  for (const PreparedJob& prepared : own_) {
    auto own = allocation_problem(prepared, plan);
    if (!own) return {.plan = plan, .of_groups = {}};
    degrees.of_groups.push_back(*std::move(own));
  }
  return degrees;
}

// The allocation problem of all groups together. Layers on the first group's devices are the
// reference; on those of each other group they are slower or faster by one factor.
AllocationProblem PipelinePricer::problem_of(const Degrees& degrees, const Order& order) const {
  const Plan& plan = degrees.plan;
  const std::vector<StagesOfGroup> groups = stages_in(order, plan);
  AllocationProblem problem = degrees.of_groups[order.front()];
  const Seconds reference = layer_times(problem);
  for (const StagesOfGroup& of : groups) {
    const AllocationProblem& own = degrees.of_groups[of.group];
    const double slowness = layer_times(own) / reference;
    for (int stage = of.first; stage < of.end; ++stage) {
      AllocatedStage& dealt = problem.stages[as_size(stage)];
      dealt = as_slow(own.stages[as_size(stage)], slowness);
      dealt.time += sends_at(of, plan, stage);
    }
  }
  for (const Crossing& crossing : crossings(job_.cluster.boundary, groups, plan)) {
    for (const auto& side : {crossing.before, crossing.behind}) {
      problem.stages[side.stage].time += crossing.added_to(side);
    }
  }
  return problem;
}

// A lower bound of the span X. Stage i works for m·T_i, after the first forward pass and before the
// last backward pass of all stages before it: X ≥ m·T_i + Σ_{j<i} T_j. Add these inequalities with
// weights w_i such that every T_i counts at least 1/s_i (s_i: the least slowness of its layers).
// Then the right side has at least the reference time of all layers, however they are dealt, and
// the left side is X·Σw. Where fill and drain may hide what passes do for sharded or offloaded
// parameters, a step is only known to last m·T_i. There is no bound where exchanges overlap
// compute, which shortens the T_i.
Seconds PipelinePricer::least_step(const Degrees& degrees, const Order& order) const {
  const Plan& plan = degrees.plan;
  if (degrees.of_groups.empty() || plan.overlap.expert_parallel) return Seconds(0);
  const bool hides = plan.zero_stage >= 2 || plan.offload.parameters != OffloadTarget::none;
  const std::vector<AllocatedLayer>& reference = degrees.of_groups.front().layers;
  Seconds work = layer_times(degrees.of_groups.front());
  double weights = 0;
  const std::vector<StagesOfGroup> groups = stages_in(order, plan);
  for (std::size_t i = groups.size(); i-- > 0;) {
    const StagesOfGroup& of = groups[i];
    const AllocationProblem& own = degrees.of_groups[of.group];
    const double slowness = least_slowness(own.layers, reference);
    for (int stage = of.end; stage-- > of.first;) {
      const double counted = hides ? 0 : weights;
      weights += std::max(0.0, (1 / slowness - counted) / plan.microbatches);
      work += (own.stages[as_size(stage)].time + sends_at(of, plan, stage)) / slowness;
    }
  }
  return work / weights;
}

// The best allocation that takes at most the share `most` of every device's memory.
std::optional<Allocation> PipelinePricer::allocate_within(double most, AllocationProblem problem,
                                                          const Plan& plan,
                                                          const Order& order) const {
  auto stage = problem.stages.begin();
  for (const std::size_t group : order) {
    const Job& own = whole_[group].job;
    const Bytes kept =
        own.cluster.usable_memory() * ((1 - most) / (1 + own.training.stack.fragmentation));
    for (int i = stages_of(plan, group); i > 0; --i) (stage++)->capacity -= kept;
  }
  return allocate_layers(problem);
}

// The same; where memory is the only objective, the allocation whose fullest device is the
// emptiest, found by bisection of that share to a thousandth.
std::optional<Allocation> PipelinePricer::allocate(const AllocationProblem& problem,
                                                   const Plan& plan, const Order& order,
                                                   double most) const {
  const auto within = [&](double share) { return allocate_within(share, problem, plan, order); };
  if (options_.objective != Objective::memory || options_.second) return within(most);
  constexpr double kNear = 1e-3;
  double share = most, least = 0;
  auto best = within(share);
  while (best && share - least > kNear) {
    const double middle = (least + share) / 2;
    auto found = within(middle);
    (found ? share : least) = middle;
    if (found) best = std::move(found);
  }
  return best;
}

std::vector<Plan> PipelinePricer::dealt(const Degrees& of, const Order& order, double most) const {
  const Plan& degrees = of.plan;
  std::vector<Plan> plans;
  const auto add = [&](const PlanRequest& request) {
    if (auto plan = legal(request)) plans.push_back(*std::move(plan));
  };
  const bool is_free = options_.space.recompute.empty();
  const auto problem = of.of_groups.empty() ? std::nullopt : std::optional(problem_of(of, order));
  if (problem && is_free) {
    if (const auto found = allocate(*problem, degrees, order, most)) {
      add(request_with(degrees, *found));
    }
    return plans;
  }
  const std::vector<int> layers = has_named_layers()
                                      ? options_.layers_per_stage
                                      : even_layers(degrees, whole_.front().job.model.layers);
  for (const RecomputeChoice& choice :
       recomputations(options_.space, job_.training.stack, degrees.pipeline_parallel)) {
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

}  // namespace trainyard
