// The search, its bound and the rule of thumb, with the analytic estimate as evaluator.
#include <gtest/gtest.h>

#include <random>

#include "model/cost/estimate.h"
#include "planner/bound/bound.h"
#include "planner/findings/baseline.h"
#include "planner/request.h"
#include "planner/search/enumeration.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

// Gives a plan of job_with_places an order of the stack and, where it can have one, a sharding
// group inside a node.
void place(const Job& job, PlanRequest& request, int order, int grouped) {
  const Stack& stack = job.training.stack;
  const bool dense = job.model.experts == 0;
  if (order == 1 && stack.rank_orders.size() > 1 && dense && request.context_parallel == 1) {
    request.rank_order = stack.rank_orders[1];
  }
  const bool in_order = request.rank_order == PlanRequest().rank_order;
  const bool fits = request.tensor_parallel <= 4 && request.context_parallel == 1 && in_order;
  if (grouped == 1 && request.zero_stage > 0 && fits && !stack.grouped_sharding.empty() && dense) {
    request.sharding_group = 8 / request.tensor_parallel;
  }
}

Job job_with_places(Job job) {
  job.training.stack.rank_orders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  job.training.stack.grouped_sharding = {1, 2, 3};
  return job;
}

// `count` legal plans drawn at random from all degrees that divide the cluster.
std::vector<Plan> random_plans(const Job& job, int count) {
  std::mt19937 random(7);
  const auto pick = [&random](const std::vector<int>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  std::vector<Plan> plans;
  while (static_cast<int>(plans.size()) < count) {
    PlanRequest request;
    const int devices = job.cluster.devices();
    request.tensor_parallel = pick(divisors(devices));
    request.pipeline_parallel = pick(divisors(devices / request.tensor_parallel));
    request.context_parallel = pick({1, 1, 1, 2, 4});
    request.virtual_stages = pick({1, 1, 2, 3, 4});
    const auto all = schedules();
    request.schedule = all[random() % all.size()]->name;
    request.micro_batch = pick({1, 2, 4});
    request.zero_stage = pick({0, 1, 2, 3});
    if (job.model.experts > 0) {
      request.expert_parallel = pick(divisors(job.model.experts));
      request.expert_tensor_parallel = pick({1, 2});
    }
    request.recompute.mode = pick({0, 1}) == 0 ? RecomputeMode::none : RecomputeMode::full;
    place(job, request, pick({0, 1, 2}), pick({0, 1}));
    if (auto plan = plan_if_legal(request, job.model, job.cluster, job.training)) {
      plans.push_back(*std::move(plan));
    }
  }
  return plans;
}

Job mixture_job(int nodes) {
  Job job = llama_8b_job(nodes);
  job.model.experts = 8;
  job.model.experts_per_token = 2;
  job.model.expert_ffn_size = 14336;
  return job;
}

void expect_never_beaten(const Job& raw) {
  const PreparedJob job = prepare(raw);
  const SearchResult result = search(job, {.top = 1}, analytic_evaluator(job));
  ASSERT_FALSE(result.plans.empty());
  const Seconds best = result.plans[0].estimate.step_time;
  int feasible = 0;
  for (const Plan& plan : random_plans(job.job, 500)) {
    const Estimate other = estimate(job, plan);
    if (other.feasible) {
      ++feasible;
      EXPECT_GE(other.step_time, best);
    }
  }
  EXPECT_GT(feasible, 20);
}

TEST(Planner, IsNeverBeatenByARandomLegalPlan) { expect_never_beaten(llama_8b_job(2)); }

TEST(Planner, IsNeverBeatenByARandomLegalPlanOfItsOrdersAndGroups) {
  expect_never_beaten(job_with_places(llama_8b_job(4)));
}

TEST(Planner, IsNeverBeatenByARandomLegalPlanOfAMixtureOfExperts) {
  expect_never_beaten(mixture_job(8));
}

// The bound promises that no plan is better.
void expect_admissible(const Job& raw) {
  const PreparedJob job = prepare(raw);
  const ParameterShares shares = parameter_shares(job);
  for (const Plan& plan : random_plans(raw, 500)) {
    const Estimate whole = estimate(job, plan);
    EXPECT_LE(objective_bound(job, shares, Objective::step_time, Offload{}),
              whole.step_time.value());
    EXPECT_LE(objective_bound(job, shares, Objective::memory, Offload{}),
              whole.peak_memory.value());
  }
}

TEST(ObjectiveBound, IsAdmissibleForADenseNetwork) { expect_admissible(llama_8b_job(4)); }

TEST(ObjectiveBound, IsAdmissibleForAMixtureOfExperts) { expect_admissible(mixture_job(4)); }

TEST(ObjectiveBound, IsAdmissibleWithoutACopyOfTheWeights) {
  Job job = llama_8b_job(4);
  job.training.stack.keeps_weight_copy = false;
  expect_admissible(job);
}

// Rajbhandari 2020 with fp32 gradients: 2 + 4 + 12 bytes per parameter, over eight devices.
TEST(ObjectiveBound, OfMemoryIsTheZeroFormula) {
  const PreparedJob job = prepare(llama_8b_job(1));
  EXPECT_NEAR(objective_bound(job, parameter_shares(job), Objective::memory, Offload{}),
              18.0 / 8 * job.parameters, 1);
}

TEST(RuleOfThumb, FillsTheNodeWithTensorParallelismAndAddsStagesUntilItFits) {
  const PreparedJob job = prepare(llama_8b_job(2));
  const auto candidate = rule_of_thumb(job, {}, analytic_evaluator(job));
  ASSERT_TRUE(candidate);
  EXPECT_TRUE(candidate->estimate.feasible);
  EXPECT_EQ(candidate->plan.tensor_parallel, 8);
  EXPECT_EQ(candidate->plan.pipeline_parallel, 1);  // 18 B · 8.03e9 / 8 = 18 GB of states
  EXPECT_EQ(candidate->plan.data_parallel, 2);
  EXPECT_EQ(candidate->plan.micro_batch, 1);
}

TEST(RuleOfThumb, RepeatsTheLeastThatTheStackCan) {
  PreparedJob job = prepare(llama_8b_job(1));
  const auto fits_repeated = [](const Plan& plan, Estimate& out) {
    out.feasible = plan.recompute.mode != RecomputeMode::none;
  };
  EXPECT_EQ(rule_of_thumb(job, {}, fits_repeated)->plan.recompute.mode, RecomputeMode::selective);
  job.job.training.stack.limits.selective_recompute = false;
  EXPECT_EQ(rule_of_thumb(job, {}, fits_repeated)->plan.recompute.mode, RecomputeMode::full);
}

TEST(RuleOfThumb, GivesTheLastThatItTriedWhenNoneFits) {
  Job raw = llama_8b_job(1);
  raw.cluster.device.memory = Bytes(1e9);
  const PreparedJob job = prepare(raw);
  const auto candidate = rule_of_thumb(job, {}, analytic_evaluator(job));
  ASSERT_TRUE(candidate);
  EXPECT_FALSE(candidate->estimate.feasible);
}

// 16 replicas cannot share 24 sequences, so the batch is refused.
TEST(DataParallelOnly, SaysWhatIsRefused) {
  Job raw = llama_8b_job(2);
  raw.training.global_batch = 24;
  const PreparedJob job = prepare(raw);
  const auto found = data_parallel_only(job, 0, {}, analytic_evaluator(job));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().where, "/training/global_batch");
  EXPECT_NE(found.error().message.find("a multiple of 16"), std::string::npos)
      << found.error().message;
}

// Plain data parallelism, as people understand it, holds every expert on every device.
TEST(DataParallelOnly, ShardsNoExperts) {
  const PreparedJob job = prepare(small_moe_job());
  const auto found = data_parallel_only(job, 0, {}, analytic_evaluator(job));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->plan.expert_parallel, 1);
  EXPECT_EQ(found->plan.data_parallel, 8);
}

TEST(RequestOf, GivesThePlanAgain) {
  const Job job = llama_8b_job(4);
  for (const Plan& plan : random_plans(job, 50)) {
    const auto again = make_plan(request_of(plan), job.model, job.cluster, job.training);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->tensor_parallel, plan.tensor_parallel);
    EXPECT_EQ(again->data_parallel, plan.data_parallel);
    EXPECT_EQ(again->microbatches, plan.microbatches);
    EXPECT_EQ(again->schedule, plan.schedule);
    EXPECT_EQ(again->zero_stage, plan.zero_stage);
    EXPECT_EQ(again->sharding_group, plan.sharding_group);
    EXPECT_EQ(again->sequence_parallel, plan.sequence_parallel);
    EXPECT_EQ(again->recompute, plan.recompute);
    EXPECT_EQ(again->optimizer_barrier, plan.optimizer_barrier);
  }
}

}  // namespace
}  // namespace trainyard
