#include "planner/improvement.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "model/schedule/schedule.h"
#include "planner/allocation.h"
#include "planner/auto_schedule.h"

namespace trainyard {
namespace {

bool allows(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the plan's software may run a pass order that splits the backward pass.
bool may_reorder(const PreparedJob& job, const SearchOptions& options, const Plan& plan) {
  const std::vector<std::string>& known = job.job.training.stack.schedules;
  const bool splits =
      known.empty() || std::any_of(known.begin(), known.end(), [](const auto& name) {
        const Schedule* schedule = find_schedule(name);
        return schedule != nullptr && schedule->splits_backward;
      });
  return splits && options.space.schedule.empty() && plan.pipeline_parallel > 1 &&
         plan.virtual_stages == 1 && plan.schedule->route == Route::loop;
}

class Improver {
 public:
  Improver(const PreparedJob& job, const SearchOptions& options, const Evaluator& evaluate,
           const Candidate& first)
      : job_(job), options_(options), evaluate_(evaluate), first_(first) {}

  void change(const Candidate& candidate, std::size_t index) {
    const Plan& plan = candidate.plan;
    auto problem = allocation_problem(job_, plan);
    if (!problem || plan.pipeline_parallel == 1) return;
    problem->none = allows(options_.space.recompute, "none");
    problem->selective = allows(options_.space.recompute, "selective");
    problem->full = allows(options_.space.recompute, "full");
    Improvement change{.candidate = candidate, .of = index, .bound = bound_of(*problem, plan)};
    const bool may_deal = options_.base.layers_per_stage.empty();
    if (const auto dealt = may_deal ? allocate_layers(*problem) : std::nullopt) {
      if (auto allocated = with_allocation(plan, *dealt)) {
        change.candidate.plan = *std::move(allocated);
        change.recompute = change.candidate.plan.recompute != plan.recompute ||
                           !change.candidate.plan.recompute_per_stage.empty();
        change.layers = counts(change.candidate.plan) != counts(plan);
        if (change.layers || change.recompute) offer(change);
      }
    }
    if (change.layers || change.recompute) reorder(change);
    reorder({.candidate = candidate, .of = index, .bound = change.bound});
  }

  bool interrupted() const {
    return options_.interrupted != nullptr && options_.interrupted->load();
  }

  std::optional<Improvement> best() && { return std::move(best_); }

 private:
  void reorder(Improvement change) {
    const Plan& plan = change.candidate.plan;
    if (interrupted() || !may_reorder(job_, options_, plan)) return;
    const bool barrier = options_.base.optimizer_barrier.value_or(false);
    auto ordered = with_found_order(job_, plan, barrier, options_.interrupted);
    if (!ordered) return;
    change.candidate.plan = *std::move(ordered);
    change.order = true;
    offer(std::move(change));
  }

  void offer(Improvement change) {
    evaluate_(change.candidate.plan, change.candidate.estimate);
    const Candidate& rival = best_ ? best_->candidate : first_;
    if (is_better(change.candidate, rival)) best_ = std::move(change);
  }

  bool is_better(const Candidate& a, const Candidate& b) const {
    if (a.estimate.feasible != b.estimate.feasible) return a.estimate.feasible;
    if (!a.estimate.feasible) return a.estimate.peak_memory < b.estimate.peak_memory;
    return value_of(a) < value_of(b);
  }
  double value_of(const Candidate& candidate) const {
    return objective_value(job_, options_.valuation, options_.objective, candidate.plan,
                           candidate.estimate);
  }

  // Layers of each chunk, even ones too.
  std::vector<int> counts(const Plan& plan) const {
    const LayersOfChunks layers(plan, job_.job.model.layers);
    std::vector<int> all;
    const int chunks = layer_chunks(pipeline_shape(plan));
    all.reserve(static_cast<std::size_t>(chunks));
    for (int chunk = 0; chunk < chunks; ++chunk) all.push_back(layers[chunk]);
    return all;
  }

  std::optional<Plan> with_allocation(const Plan& plan, const Allocation& dealt) const {
    const Job& j = job_.job;
    return plan_if_legal(request_with(plan, dealt), j.model, j.cluster, j.training);
  }

  // If no stage ever waited, and nothing but passes took any time, under the best balance that the
  // memory allows; another order may keep as little as one micro-batch.
  Seconds bound_of(AllocationProblem problem, const Plan& plan) const {
    problem.fill = 0;
    if (may_reorder(job_, options_, plan)) {
      for (AllocatedStage& stage : problem.stages) stage.in_flight = 1;
    }
    const auto balanced = allocate_layers(problem);
    return (balanced ? balanced->step : Seconds(0)) + job_.job.training.stack.step_overhead;
  }

  const PreparedJob& job_;
  const SearchOptions& options_;
  const Evaluator& evaluate_;
  const Candidate& first_;
  std::optional<Improvement> best_;
};

}  // namespace

std::optional<Improvement> improve(const PreparedJob& job, const SearchOptions& options,
                                   const std::vector<Candidate>& plans, const Evaluator& evaluate) {
  if (plans.empty()) return std::nullopt;
  Improver improver(job, options, evaluate, plans.front());
  const std::size_t count = std::min(plans.size(), kMostImproved);
  for (std::size_t i = 0; i < count && !improver.interrupted(); ++i) {
    if (options.progress) options.progress(static_cast<double>(i) / static_cast<double>(count));
    improver.change(plans[i], i);
  }
  return std::move(improver).best();
}

}  // namespace trainyard
