// The plans of a search are those that the stack runs, unless others are asked for by name.
#include "planner/offered.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/rank_orders.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

SearchResult found(const Job& job, const SearchOptions& options) {
  const PreparedJob prepared = prepare(job);
  return search(prepared, options, analytic_evaluator(prepared));
}

// Whether some plan of the space satisfies `has`, among those of one sequence a micro-batch, for
// none of the rules here depends on their number.
template <typename Has>
bool any_plan(const Job& job, SearchOptions options, const Has& has) {
  options.top = 2000;
  options.space.micro_batch = {1};
  const SearchResult result = found(job, options);
  return std::ranges::any_of(result.plans, [&](const Candidate& one) { return has(one.plan); });
}

TEST(Offered, LeavesOutPipelinesWhereTheStackHasNone) {
  Job job = small_dense_job();
  const auto staged = [](const Plan& plan) { return plan.pipeline_parallel > 1; };
  EXPECT_TRUE(any_plan(job, {}, staged));
  job.training.stack.limits.pipelines = false;
  EXPECT_FALSE(any_plan(job, {}, staged));
  SearchOptions named;
  named.space.pipeline_parallel = {1, 2};
  EXPECT_TRUE(any_plan(job, named, staged));
  named.space.pipeline_parallel = Numbers::between(1, 4);  // a bound names nothing
  EXPECT_FALSE(any_plan(job, named, staged));
}

TEST(Offered, LeavesOutAlgorithmsOfContextParallelismThatTheStackHasNot) {
  Job job = small_dense_job();
  job.training.stack.limits.context_algorithms = {"ring"};
  const auto other = [](const Plan& plan) {
    return plan.context_parallel > 1 && plan.context_parallel_algorithm != ContextAlgorithm::ring;
  };
  EXPECT_FALSE(any_plan(job, {}, other));
  SearchOptions named;
  named.space.context_parallel_algorithm = {"all-gather"};
  EXPECT_TRUE(any_plan(job, named, other));
  job.training.stack.limits.context_algorithms = std::vector<std::string>();
  EXPECT_FALSE(any_plan(job, {}, [](const Plan& plan) { return plan.context_parallel > 1; }));
}

TEST(Offered, HasTensorParallelismWithSequenceParallelismAsTheStackHas) {
  Job job = small_dense_job();
  const auto has = [](bool sequence) {
    return [sequence](const Plan& plan) {
      return plan.tensor_parallel > 1 && plan.sequence_parallel == sequence;
    };
  };
  EXPECT_TRUE(any_plan(job, {}, has(true)));
  EXPECT_TRUE(any_plan(job, {}, has(false)));
  job.training.stack.limits.sequence_parallel = SequenceParallelism::always;
  EXPECT_TRUE(any_plan(job, {}, has(true)));
  EXPECT_FALSE(any_plan(job, {}, has(false)));
  job.training.stack.limits.sequence_parallel = SequenceParallelism::never;
  EXPECT_FALSE(any_plan(job, {}, has(true)));
  EXPECT_TRUE(any_plan(job, {}, has(false)));
  SearchOptions named;
  named.space.sequence_parallel = {true};
  EXPECT_TRUE(any_plan(job, named, has(true)));
}

// Megatron-Core runs ZeRO-3 only without a pipeline. So where that fits, a named ZeRO-3 has none.
TEST(Offered, KeepsToDegreesThatANamedZeroStageRunsWith) {
  Job job = small_dense_job();
  job.training.stack.pipeline_zero_stages = {0, 1};
  SearchOptions named;
  named.space.zero_stage = {3};
  const auto staged = [](const Plan& plan) { return plan.pipeline_parallel > 1; };
  EXPECT_FALSE(any_plan(job, named, staged));
  named.space.pipeline_parallel = {4};
  EXPECT_TRUE(any_plan(job, named, staged));
  named.space.pipeline_parallel.clear();
  // Two replicas and a batch of two: with eight devices only a pipeline is left.
  named.space.tensor_parallel = {1};
  named.space.context_parallel = {1};
  named.space.data_parallel = {2};
  EXPECT_TRUE(any_plan(job, named, staged));
}

// megatron/core/parallel_state.py: with pp before dp, experts must have as many replicas as the
// rest.
TEST(Offered, HasAnOrderOfMegatronCoreWhereExpertsLeaveAsManyReplicas) {
  Job job = small_moe_job();
  job.training.stack.schedules = {"1f1b"};
  job.training.stack.rank_orders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  Plan plan;
  plan.pipeline_parallel = 2;
  plan.data_parallel = 4;
  plan.rank_order = "tp-cp-ep-pp-dp";
  plan.expert_parallel = 2;  // of t·c = 1
  EXPECT_FALSE(runs_order(job, plan));
  plan.expert_parallel = 1;
  EXPECT_TRUE(runs_order(job, plan));
  plan.tensor_parallel = plan.expert_parallel = 2;
  EXPECT_TRUE(runs_order(job, plan));
  plan.rank_order = "tp-cp-ep-dp-pp";
  plan.expert_parallel = 4;
  EXPECT_TRUE(runs_order(job, plan));
}

TEST(Offered, IsARecomputationThatTheSpaceNames) {
  const Stack stack;
  Plan plan;
  plan.pipeline_parallel = 2;
  plan.recompute = {RecomputeMode::full, 2};
  SearchSpace space;
  EXPECT_TRUE(may_repeat(space, stack, plan));
  space.recompute = {{{RecomputeMode::full, 1}, {}}};
  EXPECT_FALSE(may_repeat(space, stack, plan));
  space.recompute.push_back({{RecomputeMode::full, 2}, {}});
  EXPECT_TRUE(may_repeat(space, stack, plan));
  space.recompute = {{{}, {{RecomputeMode::full, 2}, {}}}};
  EXPECT_FALSE(may_repeat(space, stack, plan));
  plan.recompute_per_stage = {{RecomputeMode::full, 2}, {}};
  EXPECT_TRUE(may_repeat(space, stack, plan));
  std::swap(plan.recompute_per_stage[0], plan.recompute_per_stage[1]);
  EXPECT_FALSE(may_repeat(space, stack, plan));
}

}  // namespace
}  // namespace trainyard
