#include "planner/passes/auto_schedule.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model/cost/estimate.h"
#include "model/cost/messages/pipeline_sends.h"
#include "model/cost/messages/traffic.h"
#include "model/schedule/listed.h"
#include "planner/request.h"

namespace trainyard {
namespace {

// The best of the plans that were offered: those that fit first, then the faster.
class Selection {
 public:
  explicit Selection(const PreparedJob& job) : estimator_(job) {}

  void offer(Plan plan) {
    estimator_.estimate_bound(plan, priced_);
    if (best_ && !is_better(priced_)) return;
    estimator_.estimate(plan, priced_);
    if (best_ && !is_better(priced_)) return;
    best_ = std::move(plan);
    std::swap(best_estimate_, priced_);
  }
  const std::optional<Plan>& best() const { return best_; }

 private:
  bool is_better(const Estimate& other) const {
    if (other.feasible != best_estimate_.feasible) return other.feasible;
    return other.feasible ? other.step_time < best_estimate_.step_time
                          : other.fullness < best_estimate_.fullness;
  }

  Estimator estimator_;
  std::optional<Plan> best_;
  Estimate best_estimate_, priced_;
};

// The most micro-batches in flight that fit a stage, interpolated between its device memory under
// 1F1B (`few`) and GPipe (`all`).
double most_in_flight(const PreparedJob& job, const Plan& plan, const Estimate& few,
                      const Estimate& all, int index) {
  const auto stage = static_cast<std::size_t>(index);
  const double m = plan.microbatches;
  const double least = std::min(plan.microbatches, plan.pipeline_parallel - index);
  const Bytes with_few = few.stages[stage].memory.at_peak.device();
  const Bytes with_all = all.stages[stage].memory.at_peak.device();
  const Bytes capacity = job.job.cluster.usable_memory();
  if (with_all <= capacity) return m;
  if (m == least || with_all <= with_few) return least;
  const Bytes each = (with_all - with_few) / (m - least);
  return std::min(m, std::floor(least + (capacity - with_few) / each));
}

// The estimate of the plan under another schedule with one chunk a stage, for its memory; the stack
// need not run that schedule.
Estimate under(const PreparedJob& job, Plan plan, std::string_view schedule) {
  plan.schedule = find_schedule(schedule);
  plan.passes = nullptr;
  return estimate(job, plan);
}

Expected<Plan> auto_schedule(const PreparedJob& job, PlanRequest request) {
  const Job& j = job.job;
  request.schedule.clear();
  const auto plain = make_plan(request, j.model, j.cluster, j.training);
  if (plain && plain->pipeline_parallel == 1) return resolve_recompute(job, *plain);
  Selection selection(job);
  if (plain) selection.offer(resolve_recompute(job, *plain));
  for (Plan& plan : named_plans(j, request)) {
    selection.offer(resolve_recompute(job, std::move(plan)));
  }
  if (!selection.best()) return tl::unexpected(plain.error());
  if (!plain || plain->virtual_stages > 1) return *selection.best();
  auto ordered = with_found_order(job, resolve_recompute(job, *plain),
                                  barrier_of_found_order(j.training.stack, request));
  if (ordered) selection.offer(*std::move(ordered));
  return *selection.best();
}

}  // namespace

std::vector<Plan> named_plans(const Job& job, PlanRequest request) {
  const int most = (job.model.layers + 2) / std::max(1, request.pipeline_parallel);
  const int first = request.virtual_stages.value_or(1);
  const int last = request.virtual_stages.value_or(most);
  std::vector<Plan> plans;
  request.passes = nullptr;
  for (const Schedule* schedule : schedules()) {
    request.schedule = schedule->name;
    for (int chunks = first; chunks <= last; ++chunks) {
      request.virtual_stages = chunks;
      auto plan = plan_if_legal(request, job.model, job.cluster, job.training);
      if (plan) plans.push_back(*std::move(plan));
    }
  }
  return plans;
}

std::optional<PassOrderProblem> pass_order_problem(const PreparedJob& job, const Plan& plan) {
  const Estimate few = under(job, plan, "1f1b");
  const Estimate all = under(job, plan, "gpipe");
  PassOrderProblem problem{.microbatches = plan.microbatches, .stages = few.passes};
  // Sends that nothing hides are in the passes already.
  if (plan.overlap.pipeline) {
    problem.send = pipeline_sends(job, plan, plan_links(job, plan)).between;
  }
  problem.most_in_flight.reserve(few.stages.size());
  for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
    problem.most_in_flight.push_back(most_in_flight(job, plan, few, all, stage));
    if (problem.most_in_flight.back() < 1) return std::nullopt;
  }
  return problem;
}

bool barrier_of_found_order(const Stack& stack, const PlanRequest& request) {
  const bool waits = stack.optimizer_barrier && !stack.limits.post_validation;
  return request.optimizer_barrier.value_or(waits);
}

std::optional<Plan> with_found_order(const PreparedJob& job, const Plan& plan, bool barrier,
                                     const std::atomic<bool>* interrupted) {
  PlanRequest request = request_of(plan);
  auto problem = pass_order_problem(job, plan);
  if (!problem) return std::nullopt;
  problem->barrier = barrier;
  auto order = find_pass_order(*problem, kPassOrderBudget, interrupted);
  if (!order) return std::nullopt;
  const PipelineShape shape{.stages = plan.pipeline_parallel, .microbatches = plan.microbatches};
  auto listed = list_schedule(std::string(kAutoSchedule), shape, std::move(order->passes), false);
  if (!listed) return std::nullopt;
  request.schedule.clear();
  request.passes = *std::move(listed);
  request.optimizer_barrier = barrier;
  const Job& j = job.job;
  return plan_if_legal(request, j.model, j.cluster, j.training);
}

Expected<Plan> complete_plan(const PreparedJob& job, const PlanRequest& request) {
  if (request.schedule == kAutoSchedule) return auto_schedule(job, request);
  const Job& j = job.job;
  return make_plan(request, j.model, j.cluster, j.training).map([&job](Plan plan) {
    return resolve_recompute(job, std::move(plan));
  });
}

}  // namespace trainyard
