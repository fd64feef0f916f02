#include "planner/improvement.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "model/schedule/schedule.h"
#include "planner/layers/allocation.h"
#include "planner/layers/layer_moves.h"
#include "planner/offered.h"
#include "planner/passes/auto_schedule.h"
#include "planner/rank_orders.h"
#include "planner/request.h"
#include "planner/search/node.h"
#include "planner/search/ranking.h"
#include "planner/time_limit.h"

namespace trainyard {
namespace {

// Budgets of the moves of layers (planner/layers/layer_moves.h): of all listed plans together, some
// 10 ms, and of one plan.
constexpr int kMostMoves = 5000;
constexpr int kMovesOfAPlan = 4000;
// For plans of other degrees: how many cells the dynamic program may look at (some 10 ms), and of
// how many plans layers are moved.
constexpr double kMostCells = 4e6;
constexpr std::size_t kMostDealt = 10;
// Layers that save less than this share are not moved.
constexpr double kWorthMoving = 1e-3;

std::vector<int> sharding_groups_of(const Plan& plan) {
  return divisors(std::int64_t{plan.data_parallel} * plan.context_parallel);
}

// Whether the plan's software may shard states inside groups and replicate them across groups. Not
// with experts: the software replicates their states, too, which the cost model does not.
bool may_group(const Job& job, const SearchOptions& options, const Plan& plan) {
  const std::vector<int>& known = job.training.stack.grouped_sharding;
  return options.space.sharding_group.empty() && job.model.experts == 0 &&
         std::find(known.begin(), known.end(), plan.zero_stage) != known.end();
}

// Whether the plan's software may run a pass order that splits the backward pass.
bool may_reorder(const PreparedJob& job, const SearchOptions& options, const Plan& plan) {
  const std::vector<std::string>& known = job.job.training.stack.schedules;
  const bool splits =
      known.empty() || std::any_of(known.begin(), known.end(), [](const auto& name) {
        const Schedule* schedule = find_schedule(name);
        return schedule != nullptr && schedule->splits_backward;
      });
  const bool runs_lists = job.job.training.stack.limits.pass_lists;
  return splits && runs_lists && options.space.schedule.empty() && plan.pipeline_parallel > 1 &&
         plan.virtual_stages == 1 && plan.schedule->route == Route::loop;
}

// Whether two plans that agree in all else have the same layers and recomputation.
bool allocated_alike(const Plan& a, const Plan& b) {
  return a.layers_per_stage == b.layers_per_stage && a.recompute == b.recompute &&
         a.recompute_per_stage == b.recompute_per_stage && a.virtual_stages == b.virtual_stages;
}

class Improver {
 public:
  Improver(const PreparedJob& job, const SearchOptions& options, const Evaluator& evaluate,
           const Candidate& first)
      : job_(job), options_(options), evaluate_(evaluate), first_(first) {}

  void change(const Candidate& candidate) {
    Improvement change{
        .candidate = candidate, .of = candidate.plan, .bound = bound_of(candidate.plan)};
    deal(change);
    if (change.layers || change.recompute) {
      offer_priced(change, true);
      reorder(change);
      place(change);
    }
    change = {.candidate = candidate, .of = candidate.plan, .bound = change.bound};
    reorder(change);
    place(change);
  }

  // Deals layers in plans of other degrees and micro-batches under every named schedule, in the
  // order given while the budget lasts; then moves layers of the best of them. Returns whether one
  // of them is the best.
  bool deal_others(const std::vector<Plan>& plans) {
    if (!by_step()) return false;
    const int taken = taken_;
    std::vector<DealtPlan> all;
    double cells = kMostCells;
    for (std::size_t i = 0; i < plans.size() && cells > 0 && !interrupted(); ++i) {
      for (const Plan& named : named_plans_beside(plans[i])) {
        if (!has_few_chunks(named)) continue;
        cells -= cells_of(named);
        add_dealt(named, all);
      }
    }
    std::ranges::stable_sort(all, [this](const DealtPlan& a, const DealtPlan& b) {
      return is_better(a.dealt.candidate, b.dealt.candidate);
    });
    put_unlike_first(all);
    for (std::size_t i = 0; i < std::min(all.size(), kMostDealt) && !interrupted(); ++i) {
      moves_left_ = std::max(moves_left_, kMovesOfAPlan);
      Improvement change{.candidate = with_moves(all[i].dealt), .of = all[i].of};
      set_changes(change.of, change.candidate.plan, change);
      if (!change.layers && !change.recompute) continue;  // searched
      change.bound = bound_of(change.of);
      offer_priced(change, true);
      reorder(change);
      place(std::move(change));
    }
    return taken_ != taken;
  }

  // Compares the best so far with every named schedule, all else as it is: with the layers dealt
  // for each schedule, then with the layers and the recomputation of the best one's stages, until
  // none is faster. Plans with even layers and one recomputation were priced by the search.
  void compare_schedules() {
    if (interrupted()) return;
    compare_dealt();
    for (int taken = -1; taken != taken_ && !interrupted();) {
      taken = taken_;
      compare_named();
      settle();
    }
  }

  bool interrupted() const {
    if (options_.interrupted != nullptr && options_.interrupted->load()) return true;
    return options_.time_limit > Seconds(0) && watch_.elapsed() >= options_.time_limit;
  }

  std::optional<Improvement> best() && { return std::move(best_); }

 private:
  std::optional<AllocationProblem> problem_of(const Plan& plan, PassOrders orders) const {
    return as_named(plan, allocation_problem(job_, plan, orders));
  }

  std::optional<AllocationProblem> as_named(const Plan& plan,
                                            std::optional<AllocationProblem> problem) const {
    if (!problem || may_repeat_by_stage(options_.space, job_.job.training.stack)) return problem;
    // Recomputation must be the same on every stage; under `full` each would choose its own number.
    problem->full = false;
    problem->none = plan.recompute_per_stage.empty() && plan.recompute == Recompute();
    problem->selective =
        plan.recompute_per_stage.empty() && plan.recompute.mode == RecomputeMode::selective;
    return problem->none || problem->selective ? problem : std::nullopt;
  }

  // Deals layers and recomputation to each stage.
  void deal(Improvement& change) {
    const Plan plan = change.candidate.plan;
    if (plan.pipeline_parallel == 1 || !options_.base.layers_per_stage.empty()) return;
    std::optional<Candidate> best;
    for (const Dealt& start : starts_of(plan, &change.candidate)) {
      Candidate moved = with_moves(start);
      if (is_dealt_alike(plan, moved.plan)) continue;
      if (!best || is_better(moved, *best)) best = std::move(moved);
    }
    if (!best) return;
    set_changes(plan, best->plan, change);
    change.candidate = *std::move(best);
  }

  void set_changes(const Plan& before, const Plan& after, Improvement& change) const {
    change.recompute = after.recompute != before.recompute ||
                       after.recompute_per_stage != before.recompute_per_stage;
    change.layers = counts(after) != counts(before);
  }

  // A plan whose layers may be moved.
  struct Dealt {
    AllocationProblem problem;
    Candidate candidate;
  };

  struct DealtPlan {
    Plan of;
    Dealt dealt;
  };

  // Puts the first of each split and schedule in front: moves gain about the same for plans of one.
  static void put_unlike_first(std::vector<DealtPlan>& all) {
    const auto key = [](const Plan& plan) {
      return std::tuple(plan.tensor_parallel, plan.context_parallel, plan.pipeline_parallel,
                        plan.schedule, plan.virtual_stages);
    };
    std::set<decltype(key(all.front().of))> seen;
    std::stable_partition(all.begin(), all.end(),
                          [&](const DealtPlan& plan) { return seen.insert(key(plan.of)).second; });
  }

  // Where moves of layers start: at the plan as the dynamic program deals it; and at the plan as it
  // is, where that was `priced` or the program deals nothing.
  std::vector<Dealt> starts_of(const Plan& plan, const Candidate* priced) const {
    std::vector<Dealt> starts;
    const auto problem = as_named(plan, problem_of_moves(job_, plan));
    if (!problem) return starts;
    const auto dealt = is_contiguous(job_, plan) ? allocate_layers(*problem) : std::nullopt;
    if (priced == nullptr && dealt && !is_of_interest(dealt->step)) return starts;
    auto allocated = dealt ? with_allocation(plan, *dealt) : std::nullopt;
    const bool known = priced != nullptr && allocated && is_dealt_alike(plan, *allocated);
    if (allocated && !known) starts.push_back({*problem, as_priced(*std::move(allocated))});
    if (priced != nullptr) {
      starts.push_back({*problem, *priced});
    } else if (starts.empty()) {
      starts.push_back({*problem, unpriced(plan)});
    }
    return starts;
  }

  // Adds the plan as the dynamic program deals it, where that is of interest. Of unlike layers in
  // chunks the program knows only the number; the price of the plan is exact.
  void add_dealt(const Plan& plan, std::vector<DealtPlan>& all) const {
    const auto problem = as_named(plan, problem_of_moves(job_, plan));
    const auto dealt = problem ? allocate_layers(*problem) : std::nullopt;
    if (!dealt || !is_of_interest(dealt->step)) return;
    auto allocated = with_allocation(plan, *dealt);
    if (allocated) all.push_back({plan, {*problem, as_priced(*std::move(allocated))}});
  }

  // Two chunks at most, unless the space asks for more; compare_schedules looks at all numbers.
  bool has_few_chunks(const Plan& plan) const {
    return plan.virtual_stages <= std::max(2, options_.space.virtual_stages.least);
  }

  // How many cells the dynamic program looks at.
  double cells_of(const Plan& plan) const {
    const double layers = job_.job.model.layers;
    return layers * layers * plan.pipeline_parallel;
  }

  // Whether a deal may beat the best. The step that the dynamic program minimises leaves out much;
  // in the rest it is 1.4 % off at most under named schedules (handbook §8).
  bool is_of_interest(Seconds dealt) const {
    const Estimate& best = best_ ? best_->candidate.estimate : first_.estimate;
    return !by_step() || !best.feasible || 0.98 * dealt < best.step_time;
  }

  bool is_dealt_alike(const Plan& a, const Plan& b) const {
    return a.recompute == b.recompute && a.recompute_per_stage == b.recompute_per_stage &&
           counts(a) == counts(b);
  }

  Candidate as_priced(Plan plan) const {
    Candidate result{.plan = std::move(plan)};
    evaluate_(result.plan, result.estimate);
    return result;
  }

  // A candidate that any priced one beats.
  static Candidate unpriced(Plan plan) {
    Candidate result{.plan = std::move(plan)};
    result.estimate.fullness = std::numeric_limits<double>::infinity();
    return result;
  }

  bool by_step() const { return options_.objective != Objective::memory; }

  Candidate with_moves(const Dealt& start) {
    const LayerMoves moves{
        .job = job_,
        .problem = start.problem,
        .evaluate = evaluate_,
        .is_better = [this](const Candidate& a, const Candidate& b) { return is_better(a, b); },
        .by_step = by_step(),
        .interrupted = options_.interrupted};
    const int share = std::min(moves_left_, kMovesOfAPlan);
    int left = share;
    Candidate moved = move_layers(moves, start.candidate, left);
    moves_left_ -= share - left;
    const Candidate& before = start.candidate;
    const bool fit = before.estimate.feasible && moved.estimate.feasible;
    return fit && value_of(moved) > (1 - kWorthMoving) * value_of(before) ? before : moved;
  }

  // Moves the layers of the best plan again, where something else has changed since the last time.
  void settle() {
    if (!best_ || settled_ || interrupted() || !options_.base.layers_per_stage.empty()) return;
    settled_ = true;
    Improvement change = *best_;
    const Plan& plan = best_->candidate.plan;
    const auto problem = as_named(plan, problem_of_moves(job_, plan));
    if (!problem) return;
    change.candidate = with_moves({*problem, best_->candidate});
    set_changes(change.of, change.candidate.plan, change);
    offer_priced(std::move(change), true);
  }

  // Tries other orders of the ranks, then other sharding groups.
  void place(Improvement change) {
    const Plan& plan = change.candidate.plan;
    const PlanRequest base = request_of(plan);
    if (options_.space.rank_order.empty()) {
      change.placement = true;
      for (const std::string& order : other_rank_orders(plan)) {
        PlanRequest request = base;
        request.rank_order = order;
        offer_request(request, change);
      }
      change.placement = false;
    }
    if (!may_group(job_.job, options_, plan)) return;
    change.sharding = true;
    for (const int group : sharding_groups_of(plan)) {
      PlanRequest request = base;
      request.sharding_group = group;
      const bool offered = offers_group(job_.job.training.stack, group, plan.context_parallel);
      if (group != plan.sharding_group && offered) offer_request(request, change);
    }
  }

  void offer_request(const PlanRequest& request, Improvement change) {
    if (interrupted()) return;
    const Job& j = job_.job;
    auto plan = plan_if_legal(request, j.model, j.cluster, j.training);
    if (!plan) return;
    change.candidate.plan = *std::move(plan);
    offer(std::move(change));
  }

  void reorder(Improvement change) {
    const Plan& plan = change.candidate.plan;
    const bool splits =
        may_reorder(job_, options_, plan) && plan.offload.activations == OffloadTarget::none;
    if (interrupted() || !splits) return;
    const bool barrier = barrier_of_found_order(job_.job.training.stack, options_.base);
    auto ordered = with_found_order(job_, plan, barrier, options_.interrupted);
    if (!ordered) return;
    change.candidate.plan = *std::move(ordered);
    change.order = true;
    offer(std::move(change));
  }

  // What a change of the schedule starts from.
  Improvement best_or_first() const {
    return best_.value_or(
        Improvement{.candidate = first_, .of = first_.plan, .bound = bound_of(first_.plan)});
  }

  std::vector<Plan> named_plans_beside(const Plan& plan) const {
    if (plan.pipeline_parallel == 1) return {};
    PlanRequest request = request_of(plan);
    request.optimizer_barrier = options_.base.optimizer_barrier;
    request.virtual_stages.reset();
    request.layers_per_stage = options_.base.layers_per_stage;
    request.recompute_per_stage.clear();
    std::vector<Plan> plans = named_plans(job_.job, request);
    std::erase_if(plans, [this](const Plan& named) { return !is_of_space(named); });
    return plans;
  }

  // Each named schedule with the layers dealt for it, the best first, because moves have a budget.
  // The schedule of the plan that was changed is left out: it was priced before.
  void compare_dealt() {
    if (!options_.base.layers_per_stage.empty()) return;
    const Improvement start = best_or_first();
    std::vector<Dealt> all;
    for (const Plan& named : named_plans_beside(start.candidate.plan)) {
      if (interrupted()) break;
      const Plan& of = start.of;
      if (named.schedule == of.schedule && named.virtual_stages == of.virtual_stages) continue;
      std::ranges::move(starts_of(named, nullptr), std::back_inserter(all));
    }
    std::ranges::stable_sort(
        all, [this](const Candidate& a, const Candidate& b) { return is_better(a, b); },
        &Dealt::candidate);
    for (const Dealt& dealt : all) offer_schedule(start, with_moves(dealt), true);
  }

  // Each named schedule with the layers of the best plan.
  void compare_named() {
    const Improvement start = best_or_first();
    for (const Plan& named : named_plans_beside(start.candidate.plan)) {
      if (interrupted()) return;
      auto changed = with_layers_of_best(start, named);
      if (changed) offer_schedule(start, *std::move(changed), false);
    }
  }

  bool is_of_space(const Plan& plan) const {
    const SearchSpace& space = options_.space;
    const auto& names = space.schedule;
    const bool named =
        names.empty() || std::ranges::find(names, plan.schedule->name) != names.end();
    return named && space.virtual_stages.has(plan.virtual_stages);
  }

  // Nothing where that plan has been priced before.
  std::optional<Candidate> with_layers_of_best(const Improvement& start, const Plan& named) const {
    const Plan& best = start.candidate.plan;
    auto plan = with_layers_of(best, named);
    if (!plan) return std::nullopt;
    const bool even = layers_of_stages(*plan) == layers_of_stages(named);
    const bool was_searched =
        !start.placement && !start.sharding && even && plan->recompute_per_stage.empty();
    const bool is_start = plan->schedule == best.schedule && allocated_alike(*plan, best);
    if (was_searched || is_start) return std::nullopt;
    return as_priced(*std::move(plan));
  }

  std::optional<Plan> with_layers_of(const Plan& plan, const Plan& named) const {
    if (!options_.base.layers_per_stage.empty()) return named;
    const std::vector<int> layers = layers_of_stages(plan);
    const PipelineShape shape = pipeline_shape(plan);
    const int head = place_of(shape, 0, layer_chunks(shape) - 1).stage;
    Allocation same;
    for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
      same.stages.push_back({.layers = layers[static_cast<std::size_t>(stage)],
                             .recompute = recompute_of(plan, stage),
                             .time = Seconds(0),
                             .own_layers = stage == head ? job_.job.model.mtp_layers : 0});
    }
    return with_allocation(named, same);
  }

  void offer_schedule(const Improvement& start, Candidate candidate, bool settled) {
    const Plan& plan = candidate.plan;
    Improvement change = start;
    change.layers = layers_of_stages(plan) != layers_of_stages(start.of);
    change.recompute = plan.recompute != start.of.recompute ||
                       plan.recompute_per_stage != start.of.recompute_per_stage;
    change.order =
        plan.schedule != start.of.schedule || plan.virtual_stages != start.of.virtual_stages;
    change.candidate = std::move(candidate);
    offer_priced(std::move(change), settled);
  }

  void offer(Improvement change) {
    evaluate_(change.candidate.plan, change.candidate.estimate);
    offer_priced(std::move(change), false);
  }

  // `settled`: no move of a layer makes it better.
  void offer_priced(Improvement change, bool settled) {
    if (!is_best(change.candidate)) return;
    const Plan& plan = change.candidate.plan;
    if (change.placement) change.bound = bound_of_places(plan);
    if (change.order && !plan.passes) change.bound = std::min(change.bound, bound_of(plan));
    best_ = std::move(change);
    settled_ = settled;
    ++taken_;
  }

  bool runs(const Candidate& candidate) const { return runs_order(job_.job, candidate.plan); }

  // Whether the plan's layers and recomputation are named by the scenario or run by the software.
  bool may_be(const Plan& plan) const {
    const bool named = !options_.base.layers_per_stage.empty();
    return may_repeat(options_.space, job_.job.training.stack, plan) &&
           (named || offers_chunks(job_.job, plan));
  }

  // A plan that the stack is not known to run ranks behind those that it runs.
  bool is_best(const Candidate& candidate) const {
    if (!is_better(candidate, first_)) return false;
    if (!may_be(candidate.plan)) return false;
    if (!best_) return true;
    const Candidate& best = best_->candidate;
    const bool as_feasible = candidate.estimate.feasible == best.estimate.feasible;
    if (as_feasible && runs(candidate) != runs(best)) return runs(candidate);
    return is_better(candidate, best);
  }

  bool is_better(const Candidate& a, const Candidate& b) const {
    if (a.estimate.feasible != b.estimate.feasible) return a.estimate.feasible;
    if (!a.estimate.feasible) return a.estimate.fullness < b.estimate.fullness;
    return value_of(a) < value_of(b);
  }
  double value_of(const Candidate& candidate) const {
    return objective_value(job_, options_.valuation, options_.objective, candidate.plan,
                           candidate.estimate);
  }

  // Layers of each chunk, also where they are even and the plan names none.
  std::vector<int> counts(const Plan& plan) const {
    return LayersOfChunks(plan, job_.job.model.layers).all();
  }

  // Layers of each stage; where micro-batches go both ways, those of one way.
  std::vector<int> layers_of_stages(const Plan& plan) const {
    const LayersOfChunks layers(plan, job_.job.model.layers);
    const PipelineShape shape = pipeline_shape(plan);
    std::vector<int> sums(static_cast<std::size_t>(plan.pipeline_parallel));
    for (int chunk = 0; chunk < layer_chunks(shape); ++chunk) {
      sums[static_cast<std::size_t>(place_of(shape, 0, chunk).stage)] += layers[chunk];
    }
    return sums;
  }

  std::optional<Plan> with_allocation(const Plan& plan, const Allocation& dealt) const {
    const Job& j = job_.job;
    return plan_if_legal(request_with(plan, dealt), j.model, j.cluster, j.training);
  }

  // Lower bound of the step with these degrees: the best balance of layers that the memory allows,
  // if no stage ever waited and nothing but passes took any time. Another pass order may keep as
  // little as one micro-batch.
  Seconds bound_of(const Plan& plan) const {
    const PassOrders orders =
        may_reorder(job_, options_, plan) ? PassOrders::any : PassOrders::of_the_plan;
    auto problem = plan.pipeline_parallel > 1 ? problem_of(plan, orders) : std::nullopt;
    if (!problem) return even_bound(plan);
    problem->fill = 0;
    // Layers may move to those of a stage's chunks that have fewer micro-batches in flight; but
    // each chunk has at least one in flight, which turns back.
    if (orders == PassOrders::any || chunks_held(pipeline_shape(plan)) > 1) {
      for (AllocatedStage& stage : problem->stages) {
        stage.in_flight = 1;
        stage.in_flight_by_layers.clear();
        stage.past_input_gradient = 0;
      }
    }
    const auto balanced = allocate_layers(*problem);
    return (balanced ? balanced->step : Seconds(0)) + job_.job.training.stack.step_overhead;
  }

  // The bound where layers cannot be dealt: passes shared out evenly, nothing recomputed, states
  // sharded over the best group.
  Seconds even_bound(Plan plan) const {
    plan.recompute = {};
    const StageCosts costs = stage_costs(job_, plan, plan_links(job_, plan));
    const PassSums sums = pass_sums(job_, costs);
    const ParameterShares shares = parameter_shares(job_);
    Seconds bound(1e300);
    for (const int group : sharding_groups_of(plan)) {
      plan.sharding_group = group;
      bound = std::min(bound, plan_bound(job_, shares, sums, plan).step);
    }
    return bound;
  }

  // The least bound of all orders of the ranks; those that leave every layer's groups in their
  // place have the same bound.
  Seconds bound_of_places(Plan plan) const {
    Seconds bound = bound_of(plan);
    std::vector<LayerGroups> seen = {layer_groups(plan)};
    for (std::string& order : other_rank_orders(plan)) {
      plan.rank_order = std::move(order);
      const LayerGroups groups = layer_groups(plan);
      if (std::find(seen.begin(), seen.end(), groups) != seen.end()) continue;
      seen.push_back(groups);
      bound = std::min(bound, bound_of(plan));
    }
    return bound;
  }

  const PreparedJob& job_;
  const SearchOptions& options_;
  const Evaluator& evaluate_;
  const Candidate& first_;
  const Stopwatch watch_;
  std::optional<Improvement> best_;
  int taken_ = 0;  // changes that were the best so far
  bool settled_ = false;
  int moves_left_ = kMostMoves;  // budget that moves of layers have left
};

// The kMostImproved plans to change, of the first kImprovedAmong: the first of each split of the
// network, then the others, because a change gains about the same for all plans of one split.
std::vector<std::size_t> improvement_order(const std::vector<Candidate>& plans) {
  std::vector<std::size_t> first;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < std::min(plans.size(), std::size_t{kImprovedAmong}); ++i) {
    const bool known = std::any_of(first.begin(), first.end(), [&](std::size_t j) {
      return same_split(plans[i].plan, plans[j].plan);
    });
    (known ? others : first).push_back(i);
  }
  first.insert(first.end(), others.begin(), others.end());
  first.resize(std::min(first.size(), kMostImproved));
  return first;
}

}  // namespace

std::optional<Improvement> improve(const PreparedJob& job, const SearchOptions& options,
                                   const std::vector<Candidate>& plans, const Evaluator& evaluate,
                                   const std::vector<Plan>& to_deal) {
  if (plans.empty()) return std::nullopt;
  Improver improver(job, options, evaluate, plans.front());
  const std::vector<std::size_t> order = improvement_order(plans);
  for (std::size_t i = 0; i < order.size() && !improver.interrupted(); ++i) {
    if (options.progress) {
      options.progress(static_cast<double>(i) / static_cast<double>(order.size()));
    }
    improver.change(plans[order[i]]);
  }
  improver.compare_schedules();
  if (improver.deal_others(to_deal)) improver.compare_schedules();
  return std::move(improver).best();
}

}  // namespace trainyard
