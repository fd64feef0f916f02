#include "planner/auto_schedule.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model/cost/estimate.h"
#include "model/cost/traffic.h"
#include "model/schedule/listed.h"
#include "planner/request.h"

namespace trainyard {
namespace {

struct PricedOrder {
  Plan plan;
  Estimate estimate;
};

// Those that fit first, then the faster.
bool is_better(const Estimate& a, const Estimate& b) {
  if (a.feasible != b.feasible) return a.feasible;
  return a.feasible ? a.step_time < b.step_time : a.fullness < b.fullness;
}

void take_if_better(const PreparedJob& job, Plan plan, std::optional<PricedOrder>& best) {
  Estimate estimated = estimate(job, plan);
  if (!best || is_better(estimated, best->estimate)) {
    best = PricedOrder{std::move(plan), std::move(estimated)};
  }
}

// Device memory of a stage with two numbers of micro-batches in flight: GPipe's and 1F1B's.
double most_in_flight(const PreparedJob& job, const Plan& plan, const Estimate& few,
                      const Estimate& all, int index) {
  const auto stage = static_cast<std::size_t>(index);
  const double m = plan.microbatches;
  const double least = std::min(plan.microbatches, plan.pipeline_parallel - index);
  const Bytes with_few = few.stages[stage].memory.at_peak.device();
  const Bytes with_all = all.stages[stage].memory.at_peak.device();
  const Bytes capacity = job.job.cluster.device.memory;
  if (with_all <= capacity) return m;
  if (m == least || with_all <= with_few) return least;
  const Bytes each = (with_all - with_few) / (m - least);
  return std::min(m, std::floor(least + (capacity - with_few) / each));
}

// The plan under another schedule with one chunk a stage, whether or not the stack runs it: its
// memory is asked.
Estimate under(const PreparedJob& job, Plan plan, std::string_view schedule) {
  plan.schedule = find_schedule(schedule);
  plan.passes = nullptr;
  return estimate(job, plan);
}

Expected<Plan> auto_schedule(const PreparedJob& job, PlanRequest request) {
  const Job& j = job.job;
  std::optional<PricedOrder> best;
  request.schedule.clear();
  const auto plain = make_plan(request, j.model, j.cluster, j.training);
  if (plain) take_if_better(job, resolve_recompute(job, *plain), best);
  if (plain && plain->pipeline_parallel == 1) return best->plan;
  for (const Schedule* schedule : schedules()) {
    request.schedule = schedule->name;
    if (const auto plan = plan_if_legal(request, j.model, j.cluster, j.training)) {
      take_if_better(job, resolve_recompute(job, *plan), best);
    }
  }
  if (!best) return tl::unexpected(plain.error());
  if (!plain || plain->virtual_stages > 1) return best->plan;
  auto ordered = with_found_order(job, resolve_recompute(job, *plain),
                                  request.optimizer_barrier.value_or(false));
  if (ordered) take_if_better(job, *std::move(ordered), best);
  return best->plan;
}

}  // namespace

std::optional<PassOrderProblem> pass_order_problem(const PreparedJob& job, const Plan& plan) {
  const Estimate few = under(job, plan, "1f1b");
  const Estimate all = under(job, plan, "gpipe");
  PassOrderProblem problem{.microbatches = plan.microbatches, .stages = few.passes};
  // Sends that nothing hides are in the passes already.
  if (plan.overlap.pipeline) problem.send = send_time(job, plan, plan_links(job, plan));
  problem.most_in_flight.reserve(few.stages.size());
  for (int stage = 0; stage < plan.pipeline_parallel; ++stage) {
    problem.most_in_flight.push_back(most_in_flight(job, plan, few, all, stage));
    if (problem.most_in_flight.back() < 1) return std::nullopt;
  }
  return problem;
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
