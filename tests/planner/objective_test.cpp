// What a search minimises other than step time, fronts of two objectives, second opinions, and what
// more of a resource is worth.
#include "planner/objective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "model/cost/reliability.h"
#include "planner/findings/confirm.h"
#include "planner/findings/hardware.h"
#include "planner/findings/marginal.h"
#include "planner/findings/ways_out.h"
#include "planner/planner.h"
#include "tests/planner/jobs.h"
#include "tests/planner/random_jobs.h"
#include "tests/support/random_cases.h"

namespace trainyard {
namespace {

// All plans of a job that fit. The search is told that none fits, so that it prunes none for being
// slow.
std::vector<Candidate> all_plans(const PreparedJob& job) {
  std::vector<Candidate> all;
  search(job, {.threads = 1}, [&](const Plan& plan, Estimate& out) {
    estimate(job, plan, out);
    if (out.feasible) all.push_back({plan, out, {}});
    out.feasible = false;
  });
  return all;
}

TEST(RobustStepTime, IsTheHighEndAndTheShareOfTimeThatAStragglerTakes) {
  Estimate estimate;
  estimate.step_time = Seconds(10);
  estimate.step_time_high = Seconds(12);
  estimate.stages.resize(2);  // of one micro-batch of two, on the stage with most of it 3 s
  estimate.stages[0].exposed.compute = Seconds(2.75);
  estimate.stages[1].exposed.compute = Seconds(2.5);
  estimate.stages[1].exposed.recompute = Seconds(0.5);
  Plan plan;
  plan.microbatches = 2;
  plan.data_parallel = 100;
  Reliability reliability;
  EXPECT_EQ(robust_step_time(reliability, plan, estimate), Seconds(12));
  // 100 devices, each a straggler once in 1,000 h and found after 1 h: a tenth of the time. At
  // speed 0.8, 6 s of kernels take a quarter longer: 12 + 0.1·6·0.25.
  reliability.stragglers = Stragglers{.mtbf = 1000 * kHour, .speed = 0.8, .detection = kHour};
  EXPECT_NEAR(robust_step_time(reliability, plan, estimate).value(), 12.15, 1e-12);
}

TEST(Search, MinimisesGoodputAndTheRobustStepAsAListOfAllPlansDoes) {
  RandomJobs jobs(21);
  for (int i = 0; i < random_cases(12); ++i) {
    const PreparedJob job = prepare(jobs.next());
    SearchOptions options{.objective = i % 2 == 0 ? Objective::goodput : Objective::step_time,
                          .top = 1};
    options.valuation.robust = i % 2 == 1;
    options.valuation.reliability.device_mtbf = 100 * kHour;
    options.valuation.reliability.stragglers = Stragglers{.mtbf = 10 * kHour};
    double least = std::numeric_limits<double>::infinity();
    const auto value = [&](const Candidate& c) {
      return objective_value(job, options.valuation, options.objective, c.plan, c.estimate);
    };
    for (const Candidate& candidate : all_plans(job)) least = std::min(least, value(candidate));
    const SearchResult found = search(job, options, analytic_evaluator(job));
    ASSERT_EQ(found.plans.empty(), std::isinf(least)) << i;
    if (!found.plans.empty()) {
      EXPECT_EQ(value(found.plans[0]), least) << i;
    }
  }
}

// A host link that is not named (TPUs) does not count as 0 B/s, with which no plan would ever
// progress. While checkpoints take seconds, the fastest plan has the best goodput.
TEST(Search, RanksByGoodputWhereTheLinkToTheHostIsUnknown) {
  Job raw = small_dense_job();
  raw.cluster.device.host_bandwidth = BytesPerSecond(0);
  const PreparedJob job = prepare(raw);
  const Candidate fastest = search(job, {.top = 1}, analytic_evaluator(job)).plans.at(0);
  const SearchOptions options{.objective = Objective::goodput, .top = 1};
  const Candidate best = search(job, options, analytic_evaluator(job)).plans.at(0);
  EXPECT_EQ(best.estimate.step_time, fastest.estimate.step_time);
  const GoodputEstimate goodput = estimate_goodput(job, best.plan, best.estimate.step_time, {}, {});
  EXPECT_GT(goodput.goodput, 0.9);
  EXPECT_GT(goodput.blocking, Seconds(0));
}

TEST(Search, GoodputDividesTheStepByWhatFailuresLeave) {
  const PreparedJob job = prepare(small_dense_job());
  const Candidate any = search(job, {.top = 1}, analytic_evaluator(job)).plans.at(0);
  Valuation valuation;
  valuation.reliability.device_mtbf = 10 * kHour;
  const double left = estimate_goodput(job, any.plan, any.estimate.step_time, valuation.reliability,
                                       valuation.checkpoint)
                          .goodput;
  ASSERT_LT(left, 1);
  EXPECT_DOUBLE_EQ(objective_value(job, valuation, Objective::goodput, any.plan, any.estimate),
                   any.estimate.step_time.value() / left);
}

TEST(ParetoFront, IsThatOfAListOfAllPlans) {
  RandomJobs jobs(22);
  int longer = 0;
  for (int i = 0; i < random_cases(12); ++i) {
    const PreparedJob job = prepare(jobs.next());
    const std::vector<Candidate> all = all_plans(job);
    SearchOptions options;
    options.second = i % 2 == 0 ? Objective::memory : Objective::energy;
    const std::vector<Candidate> front = search(job, options, analytic_evaluator(job)).plans;
    const auto values = [&options](const Candidate& c) {
      return Values{c.estimate.step_time.value(), objective_value(*options.second, c.estimate)};
    };
    std::vector<std::pair<double, double>> pairs, expected, found;
    for (const Candidate& one : all) pairs.emplace_back(values(one).first, values(one).second);
    std::sort(pairs.begin(), pairs.end());
    for (const auto& pair : pairs) {  // by the first value: on the front where the second falls
      if (expected.empty() || pair.second < expected.back().second) expected.push_back(pair);
    }
    for (const Candidate& one : front) found.emplace_back(values(one).first, values(one).second);
    EXPECT_EQ(found, expected) << i;
    longer += found.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(longer, 0);
}

Candidate lasting(double seconds, int tensor) {
  Candidate candidate;
  candidate.plan.tensor_parallel = tensor;
  candidate.estimate.step_time = Seconds(seconds);
  candidate.estimate.step_time_low = Seconds(0.9 * seconds);
  candidate.estimate.step_time_high = Seconds(1.1 * seconds);
  candidate.estimate.feasible = true;
  return candidate;
}

TEST(Confirm, OrdersByTheSecondTimeAndFlagsWhatLeavesTheInterval) {
  std::vector<Candidate> plans = {lasting(1.0, 1), lasting(1.01, 2), lasting(1.02, 4)};
  const PreparedJob job = prepare(small_dense_job());
  const auto second = [](const Plan& plan) -> Expected<Estimate> {
    if (plan.tensor_parallel == 2) return failure("plan", "not lowered");
    return lasting(plan.tensor_parallel == 1 ? 1.2 : 1.0, plan.tensor_parallel).estimate;
  };
  confirm(job, {}, 3, second, plans);
  EXPECT_EQ(plans[0].plan.tensor_parallel, 4);
  EXPECT_FALSE(plans[0].confirmation->departs);
  EXPECT_EQ(plans[1].plan.tensor_parallel, 2);
  EXPECT_EQ(plans[1].confirmation->reason, "not lowered");
  EXPECT_EQ(plans[2].plan.tensor_parallel, 1);
  EXPECT_TRUE(plans[2].confirmation->departs);
}

TEST(Confirm, PutsWhatThenDoesNotFitBehindWhatDoes) {
  std::vector<Candidate> plans = {lasting(1.0, 1), lasting(1.01, 2)};
  const auto second = [](const Plan& plan) -> Expected<Estimate> {
    Estimate found = lasting(1.0, plan.tensor_parallel).estimate;
    found.feasible = plan.tensor_parallel == 2;
    return found;
  };
  confirm(prepare(small_dense_job()), {}, 2, second, plans);
  EXPECT_EQ(plans[0].plan.tensor_parallel, 2);
  EXPECT_EQ(plans[1].plan.tensor_parallel, 1);
  EXPECT_FALSE(best_known(plans[1]).feasible);
}

TEST(Confirm, GoesOnUntilAPlanFits) {
  std::vector<Candidate> plans = {lasting(1.0, 1), lasting(1.01, 2), lasting(1.02, 4),
                                  lasting(1.03, 8)};
  const auto second = [](const Plan& plan) -> Expected<Estimate> {
    Estimate found = lasting(1.0, plan.tensor_parallel).estimate;
    found.feasible = plan.tensor_parallel == 4;
    return found;
  };
  confirm(prepare(small_dense_job()), {}, 1, second, plans);
  EXPECT_EQ(plans[0].plan.tensor_parallel, 4);
  EXPECT_FALSE(plans[3].confirmation);
}

TEST(Confirm, LeavesPlansBeyondTheFirstAlone) {
  std::vector<Candidate> plans = {lasting(1, 1), lasting(2, 2)};
  const PreparedJob job = prepare(small_dense_job());
  const auto second = [](const Plan&) -> Expected<Estimate> { return lasting(9, 1).estimate; };
  confirm(job, {}, 1, second, plans);
  EXPECT_EQ(plans[0].plan.tensor_parallel, 1);
  EXPECT_FALSE(plans[1].confirmation);
}

// The first plan plays for so long that the user gives up.
TEST(Confirm, LeavesWhatWasNotReachedBehind) {
  std::vector<Candidate> plans = {lasting(1.0, 1), lasting(1.01, 2), lasting(1.02, 4)};
  const PreparedJob job = prepare(small_dense_job());
  std::atomic<bool> interrupted = false;
  const auto second = [&](const Plan& plan) -> Expected<Estimate> {
    interrupted = plan.tensor_parallel == 2;
    return lasting(plan.tensor_parallel == 1 ? 1.05 : 1.04, plan.tensor_parallel).estimate;
  };
  confirm(job, {.interrupted = &interrupted}, 3, second, plans);
  EXPECT_EQ(plans[0].plan.tensor_parallel, 2);
  EXPECT_EQ(plans[1].plan.tensor_parallel, 1);
  EXPECT_EQ(plans[2].plan.tensor_parallel, 4);
  EXPECT_FALSE(plans[2].confirmation);
}

// One search for all resources must find, for each, what a search from scratch finds.
TEST(MarginalValues, AreThoseOfAWholeSearchOnTheBetterJob) {
  const Job job = llama_8b_job(1);
  const PreparedJob prepared = prepare(job);
  const Candidate winner = search(prepared, {.top = 1}, analytic_evaluator(prepared)).plans.at(0);
  const auto values = marginal_values(prepared, {}, winner, analytic_evaluator);
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[1].resource, "memory capacity");
  constexpr std::array kRaises = {raise_flops, raise_memory_capacity, raise_memory_bandwidth,
                                  raise_network_bandwidth, raise_link_bandwidth};
  std::size_t i = 0;
  for (const auto raise : kRaises) {
    Job larger = job;
    raise(larger, 1 + kMarginalShare);
    const PreparedJob more = prepare(larger);
    const Candidate best = search(more, {.top = 1}, analytic_evaluator(more)).plans.at(0);
    EXPECT_DOUBLE_EQ(values[i].gained, 1 - best.estimate.step_time / winner.estimate.step_time)
        << values[i].resource;
    EXPECT_GE(values[i].gained, 0) << values[i].resource;
    EXPECT_LE(values[i].gained, kMarginalShare) << values[i].resource;
    ++i;
  }
  EXPECT_GT(values[0].gained, 0.001);
}

TEST(MarginalValues, HaveTheLinkToTheHostsWhereThePlanUsesIt) {
  Job job = llama_8b_job(1);
  job.cluster.device.host_bandwidth = BytesPerSecond(50e9);
  const PreparedJob prepared = prepare(job);
  SearchOptions options{.top = 1};
  options.space.offload = {"states"};
  const Candidate winner = search(prepared, options, analytic_evaluator(prepared)).plans.at(0);
  const auto values = marginal_values(prepared, options, winner, analytic_evaluator);
  ASSERT_EQ(values.size(), 7u);
  EXPECT_EQ(values[5].resource, "host link bandwidth");
  job.cluster.device.host_bandwidth = BytesPerSecond(50.5e9);
  const PreparedJob more = prepare(job);
  const Candidate best = search(more, options, analytic_evaluator(more)).plans.at(0);
  EXPECT_NEAR(values[5].gained, 1 - best.estimate.step_time / winner.estimate.step_time, 1e-12);
  EXPECT_GT(values[5].gained, 0);
}

// The update on the hosts reads and writes their memory, whatever the link's speed. With a link of
// 1 PB/s and memory of 20 GB/s it is most of the step.
TEST(MarginalValues, HaveTheMemoryOfTheHostsWhereThePlanUpdatesThere) {
  Job job = llama_8b_job(1);
  job.cluster.device.host_bandwidth = BytesPerSecond(1e15);
  job.cluster.host_memory_bandwidth = BytesPerSecond(20e9);
  const PreparedJob prepared = prepare(job);
  SearchOptions options{.top = 1};
  options.space.offload = {"optimizer"};
  const Candidate winner = search(prepared, options, analytic_evaluator(prepared)).plans.at(0);
  const auto values = marginal_values(prepared, options, winner, analytic_evaluator);
  ASSERT_EQ(values.size(), 7u);
  EXPECT_EQ(values[6].resource, "host memory bandwidth");
  job.cluster.host_memory_bandwidth = BytesPerSecond(20.2e9);
  const PreparedJob more = prepare(job);
  const Candidate best = search(more, options, analytic_evaluator(more)).plans.at(0);
  EXPECT_NEAR(values[6].gained, 1 - best.estimate.step_time / winner.estimate.step_time, 1e-12);
  // The gain from 1 % more memory bandwidth is the update's share of the step; with such a link
  // nothing else shows.
  const double share = winner.estimate.breakdown.offload / winner.estimate.step_time;
  EXPECT_GT(share, 0.2);
  EXPECT_NEAR(values[6].gained, share * (1 - 1 / 1.01), 1e-4);
  EXPECT_NEAR(values[5].gained, 0, 1e-6);
}

// An optimizer on drives of 1 GB/s is updated at their speed, so the gain from 1 % more is the
// update's share of the step.
TEST(MarginalValues, HaveTheDrivesWhereThePlanUpdatesThere) {
  Job job = llama_8b_job(1);
  job.cluster.device.host_bandwidth = BytesPerSecond(1e15);
  job.cluster.nvme_bandwidth = BytesPerSecond(1e9);
  const PreparedJob prepared = prepare(job);
  SearchOptions options{.top = 1};
  options.base.offload.optimizer = OffloadTarget::nvme;
  const Candidate winner = search(prepared, options, analytic_evaluator(prepared)).plans.at(0);
  ASSERT_EQ(winner.plan.offload.optimizer, OffloadTarget::nvme);
  const auto values = marginal_values(prepared, options, winner, analytic_evaluator);
  ASSERT_EQ(values.size(), 8u);
  EXPECT_EQ(values[7].resource, "NVMe bandwidth");
  const double share = winner.estimate.breakdown.offload / winner.estimate.step_time;
  EXPECT_GT(share, 0.2);
  EXPECT_NEAR(values[7].gained, share * (1 - 1 / 1.01), 1e-4);
  EXPECT_NEAR(values[6].gained, 0, 1e-6);
}

TEST(WaysOut, FitAndAreTheCheapestFirst) {
  Job job = small_dense_job();
  SearchOptions options{.objective = Objective::memory};
  options.space.zero_stage = {0};
  options.space.recompute = {{}};
  options.space.tensor_parallel = {1};
  options.space.pipeline_parallel = {1};
  options.space.micro_batch = {1};
  const PreparedJob ample = prepare(job);
  const SearchResult least = search(ample, options, analytic_evaluator(ample));
  // Just too little memory for the smallest of these plans.
  job.cluster.device.memory = least.plans.at(0).estimate.peak_memory * 0.999;
  const PreparedJob prepared = prepare(job);
  options.objective = Objective::step_time;
  ASSERT_TRUE(search(prepared, options, analytic_evaluator(prepared)).plans.empty());
  const std::vector<WayOut> ways = ways_out(job, options, analytic_evaluator);
  ASSERT_FALSE(ways.empty());
  ASSERT_LE(ways.size(), 3u);
  for (const WayOut& way : ways) EXPECT_TRUE(way.candidate.estimate.feasible) << way.change;
  for (std::size_t i = 1; i < ways.size(); ++i) {
    EXPECT_LE(ways[i - 1].device_seconds_per_token, ways[i].device_seconds_per_token);
  }
}

// 88 devices share a batch of 64 only if 11 of them are something other than replicas, and 32
// layers are no multiple of 11. Compared with a search on every smaller number of nodes.
TEST(FewerNodes, AreTheFastestOfAllAndSaidOnlyWhereTheyAreFaster) {
  Job job = llama_8b_job(11);
  job.training.global_batch = 64;
  const auto best_on = [&job](int nodes) {
    Job fewer = job;
    fewer.cluster.nodes = nodes;
    const PreparedJob prepared = prepare(fewer);
    return search(prepared, {.top = 1}, analytic_evaluator(prepared)).plans.at(0);
  };
  const Candidate all = best_on(11);
  double fastest = all.estimate.step_time.value();
  for (int nodes = 6; nodes < 11; ++nodes) {
    fastest = std::min(fastest, best_on(nodes).estimate.step_time.value());
  }
  ASSERT_LT(fastest, all.estimate.step_time.value());
  const auto found = fewer_nodes(job, {}, all, analytic_evaluator);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->candidate.estimate.step_time.value(), fastest);

  job.cluster.nodes = 8;
  EXPECT_FALSE(fewer_nodes(job, {}, best_on(8), analytic_evaluator).has_value());
  EXPECT_FALSE(
      fewer_nodes(job, {.objective = Objective::cost}, best_on(8), analytic_evaluator).has_value());
}

// Eight replicas do not fit. The best of all plans has the named micro-batch, so freeing only the
// degrees finds it, and freeing all keys finds no other.
TEST(WaysOut, ShowEachPlanOnceUnderTheNarrowestWay) {
  Job job = small_dense_job();
  SearchOptions replicas{.objective = Objective::memory, .top = 1};
  replicas.space.data_parallel = {8};
  const PreparedJob ample = prepare(job);
  const SearchResult least = search(ample, replicas, analytic_evaluator(ample));
  job.cluster.device.memory = least.plans.at(0).estimate.peak_memory * 0.999;
  const PreparedJob prepared = prepare(job);
  const SearchResult all = search(prepared, {.top = 1}, analytic_evaluator(prepared));
  ASSERT_FALSE(all.plans.empty());
  const Candidate& best = all.plans.front();
  SearchOptions options{.top = 1};
  options.space.data_parallel = {8};
  options.space.micro_batch = {best.plan.micro_batch};
  const std::vector<WayOut> ways = ways_out(job, options, analytic_evaluator);
  const auto degrees = std::ranges::find(ways, "any degrees", &WayOut::change);
  ASSERT_NE(degrees, ways.end());
  EXPECT_EQ(degrees->candidate.estimate.step_time, best.estimate.step_time);
  EXPECT_EQ(std::ranges::find(ways, "all that the planner section leaves out", &WayOut::change),
            ways.end());
}

// Three of four layers on one of two stages need more memory than two and two.
TEST(WaysOut, AreOtherLayersThanTheOnesThatWereFixed) {
  Job job = small_dense_job();
  SearchOptions options{.objective = Objective::memory};
  options.base.layers_per_stage = {3, 1};
  const PreparedJob ample = prepare(job);
  const SearchResult least = search(ample, options, analytic_evaluator(ample));
  job.cluster.device.memory = least.plans.at(0).estimate.peak_memory * 0.999;
  options.objective = Objective::step_time;
  const PreparedJob prepared = prepare(job);
  ASSERT_TRUE(search(prepared, options, analytic_evaluator(prepared)).plans.empty());
  const std::vector<WayOut> ways = ways_out(job, options, analytic_evaluator);
  const auto freed =
      std::ranges::find(ways, "layers as even as they go, on any stages", &WayOut::change);
  ASSERT_NE(freed, ways.end());
  EXPECT_TRUE(freed->candidate.plan.layers_per_stage.empty());
  EXPECT_TRUE(freed->candidate.estimate.feasible);
}

// A single node whose fabric is unknown: nothing says how it would be connected to another node.
TEST(WaysOut, AreMoreNodesOnlyWhereAFabricConnectsThem) {
  for (const bool known : {true, false}) {
    Job job = small_dense_job();
    job.cluster.nodes = 1;
    if (!known) job.cluster.inter = {};
    const SearchOptions least{.objective = Objective::memory, .top = 1};
    const PreparedJob ample = prepare(job);
    const SearchResult smallest = search(ample, least, analytic_evaluator(ample));
    job.cluster.device.memory = smallest.plans.at(0).estimate.peak_memory * 0.999;
    const std::vector<WayOut> ways = ways_out(job, {}, analytic_evaluator);
    const bool more = std::ranges::any_of(
        ways, [](const WayOut& way) { return way.change.find("nodes") != std::string::npos; });
    EXPECT_EQ(more, known);
  }
}

}  // namespace
}  // namespace trainyard
