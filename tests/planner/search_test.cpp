#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <new>

#include "planner/findings/baseline.h"
#include "planner/planner.h"
#include "planner/search/ranking.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

// Second computation: every number from 1 to 8 for every degree, every schedule, whatever make_plan
// accepts. It knows nothing of divisors, equivalent plans or the order of a search.
struct BruteForce {
  explicit BruteForce(const Job& j) : job(j) { tensor(); }

  void tensor() {
    for (request.tensor_parallel = 1; request.tensor_parallel <= 8; ++request.tensor_parallel) {
      for (int context = 1; context <= 8; ++context) {
        request.context_parallel = context;
        pipeline();
      }
    }
  }
  void pipeline() {
    for (int stages = 1; stages <= 8; ++stages) {
      for (int data = 1; data <= 8; ++data) {
        request.pipeline_parallel = stages;
        request.data_parallel = data;
        if (request.tensor_parallel * request.context_parallel * stages * data == 8) experts();
      }
    }
  }
  void experts() {
    const int most = job.model.experts > 0 ? 8 : 1;
    for (int expert = 1; expert <= most; ++expert) {
      for (int expert_tensor = 1; expert_tensor <= most; ++expert_tensor) {
        request.expert_parallel = expert;
        request.expert_tensor_parallel = expert_tensor;
        shapes();
      }
    }
  }
  void shapes() {
    for (request.micro_batch = 1; request.micro_batch <= 8; ++request.micro_batch) {
      for (const int chunks : {1, 2, 3, 4, 5, 6}) {
        request.virtual_stages = chunks;
        for (const Schedule* schedule : schedules()) {
          request.schedule = schedule->name;
          choices();
        }
      }
    }
  }
  void choices() {
    for (int stage = 0; stage <= 3; ++stage) {
      for (const RecomputeMode mode :
           {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
        request.zero_stage = stage;
        request.recompute.mode = mode;
        const auto plan = plan_if_legal(request, job.model, job.cluster, job.training);
        if (!plan) continue;
        const Estimate estimate = arbitrary_estimate(job, *plan);
        if (estimate.feasible) best = std::min(best, estimate.step_time);
      }
    }
  }

  const Job& job;
  PlanRequest request;
  Seconds best{std::numeric_limits<double>::infinity()};
};

SearchResult search_arbitrarily(const Job& job, const SearchOptions& options) {
  return search(prepare(job), options,
                [&job](const Plan& plan, Estimate& out) { out = arbitrary_estimate(job, plan); });
}

void expect_same_plans(const SearchResult& a, const SearchResult& b) {
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (std::size_t i = 0; i < a.plans.size(); ++i) {
    EXPECT_TRUE(same_choices(a.plans[i].plan, b.plans[i].plan));
  }
}

TEST(Search, FindsTheBestOfANaiveEnumerationOfADenseJob) {
  const Job job = small_dense_job();
  const SearchResult result = search_arbitrarily(job, {});
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans[0].estimate.step_time, BruteForce(job).best);
  EXPECT_TRUE(result.optimal);
  EXPECT_EQ(result.gap, 0);
}

TEST(Search, FindsTheBestOfANaiveEnumerationOfAMixtureOfExperts) {
  const Job job = small_moe_job();
  const SearchResult result = search_arbitrarily(job, {});
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans[0].estimate.step_time, BruteForce(job).best);
}

TEST(Search, FindsTheBestWithoutFlashAttention) {
  Job job = small_dense_job();
  job.training.stack.flash_attention = false;  // selective recomputation matters
  const SearchResult result = search_arbitrarily(job, {});
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans[0].estimate.step_time, BruteForce(job).best);
}

TEST(Search, DoesNotDependOnTheNumberOfThreads) {
  const Job job = small_moe_job();
  const SearchResult one = search_arbitrarily(job, {.top = 20, .threads = 1});
  for (const int threads : {2, 3, 8}) {
    const SearchResult many = search_arbitrarily(job, {.top = 20, .threads = threads});
    expect_same_plans(one, many);
    EXPECT_EQ(one.considered, many.considered);
    EXPECT_EQ(one.evaluated, many.evaluated);
    EXPECT_EQ(one.infeasible, many.infeasible);
  }
}

// Second computation of the fewest layers that fit: `"recompute": "auto"`.
TEST(Search, RepeatsAsFewLayersAsFit) {
  Job raw = llama_8b_job(1);
  PlanRequest request{.tensor_parallel = 8, .micro_batch = 4};
  const auto memory = [&](RecomputeMode mode) {
    request.recompute = {.mode = mode};
    const Plan plan = make_plan(request, raw.model, raw.cluster, raw.training).value();
    return estimate(prepare(raw), plan).peak_memory;
  };
  const Bytes most = memory(RecomputeMode::none), least = memory(RecomputeMode::full);
  raw.cluster.device.memory = least + (most - least) * 0.6;
  request.recompute = {.mode = RecomputeMode::automatic};
  const PreparedJob job = prepare(raw);
  const Plan expected =
      resolve_recompute(job, make_plan(request, raw.model, raw.cluster, raw.training).value());
  ASSERT_GT(expected.recompute.full_layers, 0);
  SearchOptions options{.top = 1};
  options.space.tensor_parallel = {8};
  options.space.sequence_parallel = {expected.sequence_parallel};
  options.space.micro_batch = {4};
  options.space.zero_stage = {expected.zero_stage};
  const SearchResult found = search(job, options, analytic_evaluator(job));
  ASSERT_EQ(found.plans.size(), 1u);
  EXPECT_EQ(found.plans[0].plan.recompute, expected.recompute);
  EXPECT_EQ(found.considered, found.space_size);
  options.space.recompute = {{{RecomputeMode::full, 0}, {}}};  // all layers
  EXPECT_EQ(search(job, options, analytic_evaluator(job)).plans.at(0).plan.recompute.full_layers,
            0);
}

TEST(Search, NamesTheDimensionsThatItCovers) {
  const PreparedJob job = prepare(small_dense_job());
  const auto covers_of = [](const PreparedJob& of, const SearchOptions& options, const char* name) {
    const std::vector<std::string> space = search(of, options, analytic_evaluator(of)).space;
    return std::find(space.begin(), space.end(), name) != space.end();
  };
  const auto covers = [&](const SearchOptions& options, const char* name) {
    return covers_of(job, options, name);
  };
  SearchOptions options;
  EXPECT_TRUE(covers(options, "zero_stage"));
  for (const char* one_value : {"sharding_group", "offload", "rank_order"}) {
    EXPECT_FALSE(covers(options, one_value)) << one_value;
  }
  Job offloads = job.job;
  offloads.cluster.device.host_bandwidth = BytesPerSecond(64e9);
  offloads.training.stack.offload.states = {3};
  EXPECT_TRUE(covers_of(prepare(offloads), options, "offload"));
  Job whole = job.job;
  whole.training.stack.zero_stack = "another";
  EXPECT_FALSE(covers_of(prepare(whole), options, "zero_stage"));
  options.space.zero_stage = {0};
  EXPECT_TRUE(covers_of(prepare(whole), options, "zero_stage"));
  options.space.zero_stage.clear();
  options.space.sharding_group = {2, 4};
  options.space.offload = {"none", "all"};
  options.space.rank_order = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
  for (const char* named : {"sharding_group", "offload", "rank_order"}) {
    EXPECT_TRUE(covers(options, named)) << named;
  }
}

TEST(Search, OrdersEqualPlansByMemoryThenByThePlan) {
  const Job job = small_dense_job();
  const auto equal = [](const Plan&, Estimate& out) {
    out = {};  // the search hands the same one again and again
    out.step_time = Seconds(1);
    out.feasible = true;
  };
  const SearchResult one = search(prepare(job), {.top = 10, .threads = 1}, equal);
  const SearchResult two = search(prepare(job), {.top = 10, .threads = 2}, equal);
  expect_same_plans(one, two);
  for (std::size_t i = 1; i < one.plans.size(); ++i) {
    EXPECT_TRUE(plan_before(one.plans[i - 1].plan, one.plans[i].plan));
  }
}

// A stack that shards over any part of the replicas: ZeRO-1 of eight over all, four and two. Only
// the best of them is listed; if the section names sizes, each is listed.
TEST(Search, ListsOneShardingGroupOfEachPlan) {
  Job job = small_dense_job();
  job.training.stack.grouped_sharding = {1, 2, 3};
  SearchOptions options{.top = 1000};
  options.space.tensor_parallel = options.space.pipeline_parallel = options.space.context_parallel =
      options.space.micro_batch = {1};
  options.space.zero_stage = {1};
  options.space.recompute = {{}};
  const auto groups = [&] {
    const PreparedJob prepared = prepare(job);
    const SearchResult result = search(prepared, options, analytic_evaluator(prepared));
    std::vector<int> listed;
    for (const Candidate& found : result.plans) listed.push_back(found.plan.sharding_group);
    return std::pair(result.considered, listed);
  };
  const auto [considered, listed] = groups();
  EXPECT_EQ(considered, 3);
  ASSERT_EQ(listed.size(), 1u);
  options.space.sharding_group = {2, 4, 8};
  const auto [of_named, each] = groups();
  EXPECT_EQ(of_named, 3);
  EXPECT_THAT(each, testing::UnorderedElementsAre(2, 4, 8));
  EXPECT_EQ(each.front(), listed.front());
}

TEST(Search, ReturnsTheTopPlansInOrder) {
  const SearchResult result = search_arbitrarily(small_dense_job(), {.top = 7});
  ASSERT_EQ(result.plans.size(), 7u);
  for (std::size_t i = 1; i < result.plans.size(); ++i) {
    EXPECT_LE(result.plans[i - 1].estimate.step_time, result.plans[i].estimate.step_time);
    EXPECT_TRUE(result.plans[i].estimate.feasible);
  }
}

TEST(Search, CountsWhatItDid) {
  SearchOptions options;
  // Without full recomputation, of which a search would try as few layers as fit and prune the
  // rest.
  options.space.recompute = {{}, {{RecomputeMode::selective, 0}, {}}};
  const SearchResult result = search_arbitrarily(small_dense_job(), options);
  EXPECT_EQ(result.considered, result.space_size);
  EXPECT_EQ(result.pruned, 0) << "the states of this network are small";
  EXPECT_LE(result.evaluated, result.considered);
  EXPECT_GT(result.infeasible, 0);
}

TEST(Search, PrunesWhatCannotFitByItsStates) {
  Job job = small_dense_job();
  // 18 B per parameter: unsharded states take more than half of the device.
  job.cluster.device.memory = Bytes(1.5 * 18 / 2 * prepare(job).parameters);
  const SearchResult result = search_arbitrarily(job, {});
  EXPECT_GT(result.pruned, 0);
  EXPECT_EQ(result.considered, result.space_size);
  EXPECT_FALSE(result.plans.empty());
}

TEST(Search, NamesTheClosestPlansWhenNoneFits) {
  const Job job = small_dense_job();
  const auto none_fits = [&job](const Plan& plan, Estimate& out) {
    out = arbitrary_estimate(job, plan);
    out.feasible = false;
  };
  const SearchResult result = search(prepare(job), {.top = 3}, none_fits);
  EXPECT_TRUE(result.plans.empty());
  ASSERT_EQ(result.closest.size(), 3u);
  EXPECT_LE(result.closest[0].estimate.peak_memory, result.closest[1].estimate.peak_memory);
}

TEST(Search, LooksAtPrunedPlansForTheClosestWhenAllArePruned) {
  Job job = small_dense_job();
  job.cluster.device.memory = Bytes(1);
  const auto none_fits = [&job](const Plan& plan, Estimate& out) {
    out = arbitrary_estimate(job, plan);
    out.feasible = false;
  };
  const SearchResult result = search(prepare(job), {.top = 3}, none_fits);
  EXPECT_EQ(result.closest.size(), 3u);
  EXPECT_EQ(result.pruned_by_memory, result.considered);
}

TEST(Search, MinimisesTheObjectiveAskedFor) {
  const Job job = small_dense_job();
  const auto price = [](const Plan& plan, Estimate& out) {
    out.feasible = true;
    out.step_time = Seconds(plan.tensor_parallel);
    out.cost_per_step = Dollars(plan.pipeline_parallel);
    out.energy_per_step = Joules(1e9 * plan.data_parallel);  // above what the kernels take
    out.peak_memory = Bytes(plan.context_parallel);
  };
  const auto best = [&](Objective objective) {
    return search(prepare(job), {.objective = objective, .top = 1}, price).plans.at(0).plan;
  };
  EXPECT_EQ(best(Objective::step_time).tensor_parallel, 1);
  EXPECT_EQ(best(Objective::cost).pipeline_parallel, 1);
  EXPECT_EQ(best(Objective::energy).data_parallel, 1);
  EXPECT_EQ(best(Objective::memory).context_parallel, 1);
}

TEST(Search, StopsWhenInterruptedAndSaysSo) {
  const std::atomic<bool> interrupted = true;
  const SearchResult result =
      search_arbitrarily(small_moe_job(), {.threads = 1, .interrupted = &interrupted});
  EXPECT_FALSE(result.optimal);
  EXPECT_LT(result.considered, result.space_size);
  EXPECT_GT(result.gap, 0);
}

TEST(Search, StopsAtItsTimeLimit) {
  const SearchResult result =
      search_arbitrarily(small_moe_job(), {.threads = 1, .time_limit = Seconds(1e-9)});
  EXPECT_FALSE(result.optimal);
  EXPECT_LT(result.considered, result.space_size);
}

TEST(Search, HasTheRuleOfThumbAtLeastWhereItWasStopped) {
  const PreparedJob job = prepare(small_moe_job());
  const Evaluator evaluate = analytic_evaluator(job);
  const SearchResult result = search(job, {.threads = 1, .time_limit = Seconds(1e-9)}, evaluate);
  const auto known = rule_of_thumb(job, {}, evaluate);
  ASSERT_TRUE(known && known->estimate.feasible);
  ASSERT_FALSE(result.plans.empty());
  const Seconds found = result.plans.front().estimate.step_time;
  EXPECT_LE(found, known->estimate.step_time);
  // The gap reaches down to what a complete search finds.
  const Seconds best = search(job, {}, evaluate).plans.at(0).estimate.step_time;
  ASSERT_LT(best, found);
  EXPECT_LE(found * (1 - result.gap), best);
}

// The search is interrupted by the first plan that is priced, after all degrees were listed;
// nothing else fits.
TEST(Search, GapOfTheRuleOfThumbReachesDownToTheBestPlan) {
  const PreparedJob job = prepare(small_moe_job());
  const Evaluator evaluate = analytic_evaluator(job);
  const Plan rule = rule_of_thumb(job, {}, evaluate)->plan;
  std::atomic<bool> interrupted = false;
  const auto only_the_rule = [&](const Plan& plan, Estimate& out) {
    evaluate(plan, out);
    out.feasible = same_choices(plan, rule);
    interrupted = true;
  };
  const SearchResult result =
      search(job, {.threads = 1, .interrupted = &interrupted}, only_the_rule);
  const Seconds best = search(job, {}, evaluate).plans.at(0).estimate.step_time;
  ASSERT_EQ(result.plans.size(), 1U);
  const Seconds found = result.plans.front().estimate.step_time;
  ASSERT_LT(best, found);
  EXPECT_LE(found * (1 - result.gap), best);
}

TEST(Search, IgnoresATimeLimitBeyondTheClock) {
  EXPECT_TRUE(search_arbitrarily(small_dense_job(), {.time_limit = Seconds(1e300)}).optimal);
}

TEST(Search, ReportsProgressUpToTheWhole) {
  double last = 0;
  SearchOptions options{.threads = 1};
  options.progress = [&last](double fraction) {
    EXPECT_GE(fraction, last);
    EXPECT_LE(fraction, 1);
    last = fraction;
  };
  search_arbitrarily(small_moe_job(), options);
  EXPECT_GT(last, 0.5);
}

TEST(Search, KeepsTheKeysThatItDoesNotSearch) {
  SearchOptions options{.top = 1};
  options.base.load_imbalance = 1.5;
  options.base.rank_order = "tp-cp-ep-pp-dp";
  const Plan plan = search_arbitrarily(small_moe_job(), options).plans.at(0).plan;
  EXPECT_EQ(plan.load_imbalance, 1.5);
  EXPECT_EQ(plan.rank_order, "tp-cp-ep-pp-dp");
}

TEST(Search, ThrowsWhatItsThreadsThrow) {
  const PreparedJob job = prepare(small_dense_job());
  const auto exhausted = [](const Plan&, Estimate&) { throw std::bad_alloc(); };
  EXPECT_THROW(search(job, {.threads = 4}, exhausted), std::bad_alloc);
}

}  // namespace
}  // namespace trainyard
