// What a plan's own layers, recomputation and pass order can gain on the plans of a search.
#include "planner/improvement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

using namespace literals;

Candidate candidate(const PreparedJob& job, const PlanRequest& request) {
  Candidate result{make_plan(request, job.job.model, job.job.cluster, job.job.training).value(),
                   {}};
  estimate(job, result.plan, result.estimate);
  return result;
}

SearchOptions with_named_schedules() {
  SearchOptions options;
  options.space.schedule = {"1f1b"};
  options.space.rank_order = {"tp-cp-ep-dp-pp"};
  return options;
}

// The vocabulary is so large that the last stage, which has the head, is the longest.
Job large_vocabulary_job() {
  Job job = llama_8b_job(1);
  job.model.vocabulary = 250'000;
  return job;
}

TEST(Improvement, TakesLayersFromTheStageWithALargeHead) {
  const PreparedJob job = prepare(large_vocabulary_job());
  const Candidate even = candidate(job, {.tensor_parallel = 2, .pipeline_parallel = 4});
  const auto found = improve(job, with_named_schedules(), {even}, analytic_evaluator(job));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->layers);
  EXPECT_FALSE(found->order);
  const std::vector<int>& layers = found->candidate.plan.layers_per_stage;
  ASSERT_EQ(layers.size(), 4u);
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 32);
  EXPECT_LT(layers[3], 8);
  EXPECT_LT(found->candidate.estimate.step_time, even.estimate.step_time);
  EXPECT_GE(found->candidate.estimate.step_time, found->bound);
}

// Second computation: every number of layers on three stages.
TEST(Improvement, IsTheBestOfAllSplitsOfThreeStages) {
  Job raw = large_vocabulary_job();
  raw.model.layers = 12;
  raw.cluster.nodes = 1;
  raw.cluster.devices_per_node = raw.cluster.nvlink_domain = 3;
  raw.cluster.inter = {};
  raw.training.global_batch = 24;
  const PreparedJob job = prepare(raw);
  PlanRequest request{.pipeline_parallel = 3};
  const Candidate even = candidate(job, request);
  const auto found = improve(job, with_named_schedules(), {even}, analytic_evaluator(job));
  ASSERT_TRUE(found);
  Seconds best(1e9);
  for (int first = 0; first <= 12; ++first) {
    for (int second = 0; first + second <= 12; ++second) {
      request.layers_per_stage = {first, second, 12 - first - second};
      const Candidate other = candidate(job, request);
      if (other.estimate.feasible) best = std::min(best, other.estimate.step_time);
    }
  }
  // The formula that the allocation minimises is at most 1.4 % off (handbook §8).
  EXPECT_LE(found->candidate.estimate.step_time, best * 1.014);
  EXPECT_LE(found->bound, best);
}

// The listed plan has no pipeline. With even layers the pipeline is slower than it, with others
// faster.
TEST(Improvement, DealsPlansThatAreNotListed) {
  Job raw = large_vocabulary_job();
  raw.cluster.intra.bandwidth = 700.0_GBps;
  const PreparedJob job = prepare(raw);
  const Candidate listed = candidate(job, {.tensor_parallel = 8});
  const Candidate even = candidate(job, {.tensor_parallel = 2, .pipeline_parallel = 4});
  ASSERT_TRUE(listed.estimate.feasible);
  ASSERT_GT(even.estimate.step_time, listed.estimate.step_time);
  const SearchOptions options = with_named_schedules();
  const Evaluator evaluate = analytic_evaluator(job);
  EXPECT_FALSE(improve(job, options, {listed}, evaluate));
  const auto found = improve(job, options, {listed}, evaluate, {even.plan});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->layers);
  EXPECT_EQ(found->of.pipeline_parallel, 4);
  EXPECT_TRUE(found->of.layers_per_stage.empty());
  EXPECT_LT(found->candidate.estimate.step_time, listed.estimate.step_time);
  EXPECT_GE(found->candidate.estimate.step_time, found->bound);
}

// The search keeps every pipeline whose bound is below the best plan, one per ZeRO stage; with few
// devices, all.
TEST(Search, KeepsPipelinesWhoseLayersMayBeDealtOtherwise) {
  Job raw = large_vocabulary_job();
  raw.cluster.devices_per_node = raw.cluster.nvlink_domain = 3;
  raw.cluster.inter = {};
  raw.training.global_batch = 8;
  const PreparedJob job = prepare(raw);
  SearchOptions options = with_named_schedules();
  const Evaluator evaluate = analytic_evaluator(job);
  EXPECT_TRUE(search(job, options, evaluate).to_deal.empty());
  options.keeps_to_deal = true;
  const std::vector<Plan> plans = search(job, options, evaluate).to_deal;
  const auto of = [&](int micro_batch, int zero_stage) {
    return std::ranges::count_if(plans, [&](const Plan& plan) {
      return plan.pipeline_parallel == 3 && plan.micro_batch == micro_batch &&
             plan.zero_stage == zero_stage;
    });
  };
  EXPECT_EQ(of(1, 0), 1);
  for (const Plan& plan : plans) {
    EXPECT_GT(plan.pipeline_parallel, 1);
    EXPECT_EQ(of(plan.micro_batch, plan.zero_stage), 1);
  }
}

// The first stage keeps the activations of p micro-batches, the last of one, so only the first
// stages must recompute.
TEST(Improvement, RecomputesOnlyWhereTheMemoryAsksForIt) {
  Job raw = llama_8b_job(1);
  const PlanRequest none{.pipeline_parallel = 8};
  const PlanRequest full{.pipeline_parallel = 8, .recompute = {RecomputeMode::full, 0}};
  const Bytes most = candidate(prepare(raw), none).estimate.peak_memory;
  const Bytes least = candidate(prepare(raw), full).estimate.peak_memory;
  raw.cluster.device.memory = least + (most - least) / 2;
  const PreparedJob job = prepare(raw);
  const Candidate everywhere = candidate(job, full);
  ASSERT_TRUE(everywhere.estimate.feasible);
  ASSERT_FALSE(candidate(job, none).estimate.feasible);
  const auto found = improve(job, with_named_schedules(), {everywhere}, analytic_evaluator(job));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->recompute);
  EXPECT_TRUE(found->candidate.estimate.feasible);
  const Plan& plan = found->candidate.plan;
  EXPECT_EQ(recompute_of(plan, 0).mode, RecomputeMode::full);
  EXPECT_EQ(recompute_of(plan, 7).mode, RecomputeMode::none);
  EXPECT_LT(found->candidate.estimate.step_time, everywhere.estimate.step_time);
}

// Megatron-Core recomputes the same number of layers in every chunk, torchtitan all or none, so no
// stage has its own recomputation.
TEST(Improvement, GivesNoStageItsOwnRecomputationWhereTheStackCannot) {
  for (const auto partial : {PartialRecompute::by_chunk, PartialRecompute::none}) {
    Job raw = llama_8b_job(1);
    const PlanRequest none{.pipeline_parallel = 8};
    const PlanRequest full{.pipeline_parallel = 8, .recompute = {RecomputeMode::full, 0}};
    const Bytes most = candidate(prepare(raw), none).estimate.peak_memory;
    const Bytes least = candidate(prepare(raw), full).estimate.peak_memory;
    raw.cluster.device.memory = least + (most - least) / 2;
    raw.training.stack.partial_recompute = partial;
    const PreparedJob job = prepare(raw);
    const Candidate everywhere = candidate(job, full);
    const auto found = improve(job, with_named_schedules(), {everywhere}, analytic_evaluator(job));
    EXPECT_TRUE(!found || found->candidate.plan.recompute_per_stage.empty());
  }
}

TEST(Improvement, MakesAPlanFitThatMissedTheMemory) {
  Job raw = llama_8b_job(1);
  const PlanRequest none{.pipeline_parallel = 8};
  raw.cluster.device.memory = candidate(prepare(raw), none).estimate.peak_memory * 0.95;
  const PreparedJob job = prepare(raw);
  const Candidate closest = candidate(job, none);
  ASSERT_FALSE(closest.estimate.feasible);
  const auto found = improve(job, with_named_schedules(), {closest}, analytic_evaluator(job));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->candidate.estimate.feasible);
}

// If plans are valued by the high end of their interval, a faster but less certain plan loses.
TEST(Improvement, IsValuedAsTheSearchIs) {
  const PreparedJob job = prepare(large_vocabulary_job());
  const Candidate even = candidate(job, {.tensor_parallel = 2, .pipeline_parallel = 4});
  const Evaluator uncertain = [&job](const Plan& plan, Estimate& out) {
    estimate(job, plan, out);
    if (!plan.layers_per_stage.empty()) out.step_time_high = 2 * out.step_time;
  };
  SearchOptions options = with_named_schedules();
  EXPECT_TRUE(improve(job, options, {even}, uncertain));
  options.valuation.robust = true;
  EXPECT_FALSE(improve(job, options, {even}, uncertain));
}

bool same_plan(const Plan& a, const Plan& b) {
  return a.schedule == b.schedule && a.passes == b.passes && a.virtual_stages == b.virtual_stages &&
         a.layers_per_stage == b.layers_per_stage && a.recompute == b.recompute &&
         a.recompute_per_stage == b.recompute_per_stage;
}

// No stage is longer than the others, so even layers are best. What is left to try is a pass order,
// and what memory makes other schedules recompute. The search has priced every schedule with even
// layers and one recomputation; for those that do not fit, layers may move.
TEST(Improvement, PricesNoPlanTwice) {
  Job raw = llama_8b_job(1);
  raw.model.vocabulary = 8;
  const PreparedJob job = prepare(raw);
  const Candidate even = candidate(job, {.pipeline_parallel = 8});
  std::vector<Plan> priced;
  const auto found = improve(job, {}, {even}, [&](const Plan& plan, Estimate& out) {
    estimate(job, plan, out);
    EXPECT_FALSE(same_plan(plan, even.plan));
    EXPECT_TRUE(plan.passes || !plan.layers_per_stage.empty() ||
                !plan.recompute_per_stage.empty() || !out.feasible);
    for (const Plan& other : priced) EXPECT_FALSE(same_plan(plan, other));
    priced.push_back(plan);
  });
  EXPECT_TRUE(std::ranges::any_of(priced, [](const Plan& plan) { return plan.passes != nullptr; }));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->layers);
}

// The sixth plan of the list is improved although five stand before it, because those are all of
// one split.
TEST(Improvement, LooksAtTheFirstPlanOfEachSplit) {
  const PreparedJob job = prepare(large_vocabulary_job());
  const Candidate four = candidate(job, {.tensor_parallel = 2, .pipeline_parallel = 4});
  const Candidate eight = candidate(job, {.tensor_parallel = 1, .pipeline_parallel = 8});
  std::vector<Candidate> plans(kMostImproved, four);
  plans.push_back(eight);
  std::vector<int> stages;  // of what is priced, plan after plan
  std::size_t changed = 0;
  SearchOptions options = with_named_schedules();
  options.progress = [&changed](double /*fraction*/) { ++changed; };
  improve(job, options, plans, [&](const Plan& plan, Estimate& out) {
    if (stages.empty() || stages.back() != plan.pipeline_parallel) {
      stages.push_back(plan.pipeline_parallel);
    }
    estimate(job, plan, out);
  });
  EXPECT_EQ(changed, kMostImproved);
  EXPECT_EQ(stages, (std::vector<int>{4, 8, 4}));
}

TEST(Improvement, LooksAtTheFirstPlansOfALongList) {
  const PreparedJob job = prepare(large_vocabulary_job());
  const Candidate even = candidate(job, {.tensor_parallel = 2, .pipeline_parallel = 4});
  std::vector<double> reports;
  SearchOptions options = with_named_schedules();
  options.progress = [&reports](double fraction) { reports.push_back(fraction); };
  const auto prices_of = [&](std::size_t plans) {
    int priced = 0;
    reports.clear();
    improve(job, options, std::vector<Candidate>(plans, even),
            [&](const Plan& plan, Estimate& out) {
              ++priced;
              estimate(job, plan, out);
            });
    return priced;
  };
  const int first = prices_of(kMostImproved);
  EXPECT_LT(prices_of(kMostImproved - 1), first);
  EXPECT_EQ(prices_of(2 * kMostImproved), first);
  EXPECT_EQ(reports, (std::vector<double>{0, 0.2, 0.4, 0.6, 0.8}));
}

TEST(Improvement, KeepsTheBestSoFarWhenInterrupted) {
  const PreparedJob job = prepare(large_vocabulary_job());
  const Candidate even = candidate(job, {.tensor_parallel = 2, .pipeline_parallel = 4});
  std::atomic<bool> interrupted = false;
  int priced = 0;
  SearchOptions options;
  options.interrupted = &interrupted;
  const Evaluator stopping = [&](const Plan& plan, Estimate& out) {
    ++priced;
    interrupted = true;
    estimate(job, plan, out);
  };
  EXPECT_TRUE(improve(job, options, {even, even, even}, stopping));
  EXPECT_EQ(priced, 1);
  EXPECT_FALSE(improve(job, options, {even}, stopping));
  EXPECT_EQ(priced, 1);
}

// Tensor groups span two nodes, although they could stay inside one.
TEST(Improvement, FindsTheFastestOrderOfTheRanks) {
  const PreparedJob job = prepare(llama_8b_job(2));
  PlanRequest request{.tensor_parallel = 4, .pipeline_parallel = 2, .rank_order = "dp-pp-cp-ep-tp"};
  const Candidate apart = candidate(job, request);
  Seconds best = apart.estimate.step_time;
  for (const char* order :
       {"tp-dp-pp-cp-ep", "tp-pp-dp-cp-ep", "dp-tp-pp-cp-ep", "pp-tp-dp-cp-ep", "pp-dp-tp-cp-ep"}) {
    request.rank_order = order;
    best = std::min(best, candidate(job, request).estimate.step_time);
  }
  ASSERT_LT(best, apart.estimate.step_time);
  SearchOptions options = with_named_schedules();
  options.base.layers_per_stage = {16, 16};
  EXPECT_FALSE(improve(job, options, {apart}, analytic_evaluator(job)));  // the order is given
  options.space.rank_order.clear();
  options.space.sharding_group = {8};
  const auto found = improve(job, options, {apart}, analytic_evaluator(job));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->placement);
  EXPECT_FALSE(found->layers || found->recompute || found->order || found->sharding);
  EXPECT_EQ(found->candidate.estimate.step_time, best);
  EXPECT_LE(found->bound, best);
}

// Second computation: a list of all sharding groups.
TEST(Improvement, FindsTheFastestShardingGroup) {
  for (const int nodes : {2, 16}) {
    Job question = llama_8b_job(nodes);
    EXPECT_TRUE(question.training.stack.grouped_sharding.empty());
    question.training.stack.grouped_sharding = {1, 2, 3};
    const PreparedJob job = prepare(question);
    for (const int stage : {1, 2, 3}) {
      PlanRequest request{.zero_stage = stage, .overlap = {.data_parallel = false}};
      const Candidate over_all = candidate(job, request);
      if (!over_all.estimate.feasible) continue;
      Seconds best = over_all.estimate.step_time;
      for (int group = 1; group < 8 * nodes; group *= 2) {
        request.sharding_group = group;
        const Candidate other = candidate(job, request);
        if (other.estimate.feasible) best = std::min(best, other.estimate.step_time);
      }
      SearchOptions options = with_named_schedules();
      const auto found = improve(job, options, {over_all}, analytic_evaluator(job));
      EXPECT_EQ(found ? found->candidate.estimate.step_time : over_all.estimate.step_time, best);
      EXPECT_LE(found ? found->bound : Seconds(0), best);
      EXPECT_TRUE(!found || found->sharding);
      options.space.sharding_group = {8 * nodes};
      EXPECT_FALSE(improve(job, options, {over_all}, analytic_evaluator(job)));
    }
  }
}

TEST(Improvement, FindsAnOrderWhereTheStackRunsOne) {
  const PreparedJob job = prepare(llama_8b_job(1));
  const Candidate plan = candidate(job, {.pipeline_parallel = 8});
  const auto found = improve(job, {}, {plan}, analytic_evaluator(job));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->order);
  PreparedJob plain = job;
  plain.job.training.stack.schedules = {"1f1b"};
  const auto without = improve(plain, {}, {plan}, analytic_evaluator(plain));
  EXPECT_TRUE(!without || !without->order);
}

// Tensor groups span two nodes. Another order of the ranks would gain more than other layers do,
// but the stack does not have it.
TEST(Improvement, PrefersWhatTheStackCanRun) {
  Job raw = large_vocabulary_job();
  raw.cluster.nodes = 2;
  raw.training.global_batch = 64;
  const PlanRequest request{
      .tensor_parallel = 4, .pipeline_parallel = 2, .rank_order = "dp-pp-cp-ep-tp"};
  const auto improved = [&](const std::vector<std::string>& schedules) {
    Job job = raw;
    job.training.stack.schedules = schedules;
    job.training.stack.rank_orders = {request.rank_order};
    const PreparedJob prepared = prepare(job);
    SearchOptions options;
    options.space.schedule = {"1f1b"};
    return improve(prepared, options, {candidate(prepared, request)}, analytic_evaluator(prepared));
  };
  const auto any = improved({});
  ASSERT_TRUE(any);
  ASSERT_TRUE(any->placement) << "else nothing is preferred";
  const auto known = improved({"1f1b"});
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->layers);
  EXPECT_FALSE(known->placement);
  EXPECT_GT(known->candidate.estimate.step_time, any->candidate.estimate.step_time);
}

}  // namespace
}  // namespace trainyard
