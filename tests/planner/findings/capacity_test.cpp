// The best plan of every size, and what follows from them, with costs that can be computed by hand.
#include "planner/findings/capacity.h"

#include <gtest/gtest.h>

#include <atomic>

#include "model/cost/reliability.h"
#include "tests/planner/jobs.h"

namespace trainyard {
namespace {

constexpr double kTokensPerSecondOfADevice = 1000;

// Every plan fits, and its speed is proportional to its devices.
Evaluator by_devices(const PreparedJob& /*job*/) {
  return [](const Plan& plan, Estimate& out) {
    out.step_time = Seconds(1);
    out.tokens_per_second = kTokensPerSecondOfADevice * plan.devices();
    out.feasible = true;
  };
}

// Like by_devices, but a plan fits only if network and sequence are small enough.
Evaluator by_size(const PreparedJob& prepared) {
  return [by_devices = by_devices(prepared), &job = prepared.job](const Plan& plan, Estimate& out) {
    by_devices(plan, out);
    out.feasible = job.training.sequence_length * job.model.layers <= 4 * 2048;
  };
}

TEST(Capacity, SearchesEverySizeInTurn) {
  CapacitySpace sizes{.nodes = {1, 2, 4}, .global_batch = {8, 16}};
  EXPECT_TRUE(asks_for_sizes(sizes));
  EXPECT_EQ(count_of(sizes), 6);
  const auto points = plan_capacity(small_dense_job(), sizes, {}, by_devices);
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[3].job.cluster.nodes, 2);
  EXPECT_EQ(points[3].job.training.global_batch, 16);
  for (const CapacityPoint& point : points) {
    ASSERT_TRUE(point.best);
    EXPECT_TRUE(point.optimal);
    EXPECT_EQ(point.best->plan.devices(), 4 * point.job.cluster.nodes);
    EXPECT_FALSE(point.run) << "the job has no tokens";
  }
}

TEST(Capacity, FindsForEachSizeWhatASearchOfItAloneFinds) {
  const auto points = plan_capacity(small_moe_job(), {.nodes = {1, 2}}, {}, analytic_evaluator);
  ASSERT_EQ(points.size(), 2u);
  Job one_node = small_moe_job();
  one_node.cluster.nodes = 1;
  const PreparedJob alone = prepare(one_node);
  const SearchResult found = search(alone, {.top = 1}, analytic_evaluator(alone));
  // Or faster, with its own layers, recomputation and pass order.
  EXPECT_LE(points[0].best->estimate.step_time, found.plans.at(0).estimate.step_time);
}

// The head is as large as several layers, so the last stage gives some of its layers away.
TEST(Capacity, TakesWhatLayersOfEachStageGain) {
  Job job = llama_8b_job(1);
  job.model.vocabulary = 250'000;
  SearchOptions options;
  options.space.pipeline_parallel = {4};
  options.space.schedule = {"1f1b"};
  const PreparedJob prepared = prepare(job);
  const SearchResult even = search(prepared, options, analytic_evaluator(prepared));
  const auto points = plan_capacity(job, {.nodes = {1}}, options, analytic_evaluator);
  ASSERT_EQ(points.size(), 1u);
  EXPECT_LT(points[0].best->estimate.step_time, even.plans.at(0).estimate.step_time);
  EXPECT_FALSE(points[0].best->plan.layers_per_stage.empty());
}

// 16,000 tokens per second for a day: 16 devices need a day plus what failures add, 8 need two.
TEST(Capacity, NamesTheFewestDevicesThatAreInTime) {
  Job job = small_dense_job();
  job.training.tokens = 16 * kTokensPerSecondOfADevice * 86400;
  const CapacitySpace sizes{.nodes = {8, 1, 2, 4}, .deadline = Seconds(1.9 * 86400)};
  const auto points = plan_capacity(job, sizes, {}, by_devices);
  const CapacityPoint* fewest = fewest_devices(points);
  ASSERT_NE(fewest, nullptr);
  EXPECT_EQ(fewest->job.cluster.devices(), 16);
  const double goodput = estimate_goodput(prepare(fewest->job), fewest->best->plan,
                                          fewest->best->estimate.step_time, {}, {})
                             .goodput;
  EXPECT_LT(goodput, 1);
  EXPECT_NEAR(fewest->run->value(), 86400 / goodput, 1e-6);
  EXPECT_EQ(fewest_devices(
                plan_capacity(job, {.nodes = {1}, .deadline = sizes.deadline}, {}, by_devices)),
            nullptr);
}

TEST(Capacity, NamesTheLargestNetworkAndTheLongestSequenceThatFit) {
  Job job = small_dense_job();
  CapacitySpace sizes{.models = {job.model, job.model, job.model},
                      .sequence_length = {512, 4096, 2048, 1024}};
  sizes.models[1].layers = 16;
  sizes.models[2].layers = 8;
  const auto points = plan_capacity(job, sizes, {}, by_size);
  ASSERT_EQ(points.size(), 12u);
  const CapacityPoint* largest = largest_model(points, Wanted::fits);
  ASSERT_NE(largest, nullptr);
  EXPECT_EQ(largest->job.model.layers, 16);  // of 512 tokens: 16 · 512 = 4 · 2048
  EXPECT_EQ(largest->job.training.sequence_length, 512);
  const CapacityPoint* longest = longest_sequence(points, Wanted::fits);
  ASSERT_NE(longest, nullptr);
  EXPECT_EQ(longest->job.training.sequence_length, 2048);  // of 4 layers
  EXPECT_EQ(longest->job.model.layers, 4);
}

// The work per token is proportional to the number of layers and to the length of the sequence.
Evaluator by_work(const PreparedJob& prepared) {
  return [&job = prepared.job](const Plan& plan, Estimate& out) {
    const auto length = static_cast<double>(job.training.sequence_length);
    out.tokens_per_second =
        kTokensPerSecondOfADevice * plan.devices() / (job.model.layers * length);
    out.step_time = Seconds(1 / out.tokens_per_second);
    out.feasible = true;
  };
}

// 4 devices process 4·1,000/(layers·length) tokens per second. 1,000 tokens with 4 layers and
// length 512 take 512 s, and twice as long with twice the length or layers.
TEST(Capacity, TakesThoseOnlyThatAreInTime) {
  Job job = small_dense_job();
  job.cluster.nodes = 1;
  job.training.tokens = 1000;
  CapacitySpace sizes{.models = {job.model, job.model, job.model},
                      .sequence_length = {512, 1024, 2048},
                      .deadline = Seconds(1.5 * 1024)};
  sizes.models[1].layers = 8;
  sizes.models[2].layers = 16;
  EXPECT_EQ(wanted(sizes), Wanted::in_time);
  const auto points = plan_capacity(job, sizes, {}, by_work);
  ASSERT_EQ(points.size(), 9u);
  for (const CapacityPoint& point : points) {
    const double alone = static_cast<double>(point.job.model.layers) / 4 *
                         static_cast<double>(point.job.training.sequence_length);
    EXPECT_NEAR(point.run->value(), alone, 0.1 * alone) << "and what failures add";
    EXPECT_EQ(point.in_time, alone <= 1024);
  }
  const CapacityPoint* largest = largest_model(points, Wanted::in_time);
  ASSERT_NE(largest, nullptr);
  EXPECT_EQ(largest->job.model.layers, 8);
  EXPECT_EQ(largest->job.training.sequence_length, 512);
  const CapacityPoint* longest = longest_sequence(points, Wanted::in_time);
  ASSERT_NE(longest, nullptr);
  EXPECT_EQ(longest->job.training.sequence_length, 1024);
  EXPECT_EQ(longest->job.model.layers, 4);
  EXPECT_EQ(largest_model(points, Wanted::fits)->job.model.layers, 16);
  EXPECT_EQ(longest_sequence(points, Wanted::fits)->job.training.sequence_length, 2048);
}

// The first plan that is priced stops its search; what it leaves open is the gap.
TEST(Capacity, SaysWhichSearchesWereStopped) {
  std::atomic<bool> interrupted = false;
  SearchOptions options{.threads = 1};
  options.interrupted = &interrupted;
  const JobEvaluator stops = [&interrupted](const PreparedJob& prepared) {
    return [by_devices = by_devices(prepared), &interrupted](const Plan& plan, Estimate& out) {
      by_devices(plan, out);
      interrupted = true;
    };
  };
  const auto points = plan_capacity(llama_8b_job(1), {.nodes = {8, 16}}, options, stops);
  ASSERT_EQ(points.size(), 1u) << "and leaves out the others";
  EXPECT_FALSE(points[0].optimal);
  ASSERT_TRUE(points[0].best);
  EXPECT_GT(points[0].gap, 0);
  EXPECT_LE(points[0].gap, 1);
  const auto proved = plan_capacity(llama_8b_job(1), {.nodes = {8}}, {}, by_devices);
  EXPECT_TRUE(proved[0].optimal);
  EXPECT_EQ(proved[0].gap, 0);
}

// A table of learned positions grows with the sequence, but the network counts as the same.
TEST(Capacity, TakesANetworkForAsLargeAtEveryLength) {
  Job job = small_dense_job();
  job.model.learned_positions = true;
  const JobEvaluator longer_on_more = [](const PreparedJob& prepared) {
    return
        [by_devices = by_devices(prepared), &of = prepared.job](const Plan& plan, Estimate& out) {
          by_devices(plan, out);
          out.feasible = of.training.sequence_length <= 512 * of.cluster.nodes;
        };
  };
  const CapacitySpace sizes{
      .models = {job.model, job.model}, .nodes = {1, 2}, .sequence_length = {512, 1024}};
  const auto points = plan_capacity(job, sizes, {}, longer_on_more);
  const CapacityPoint* largest = largest_model(points, Wanted::fits);
  ASSERT_NE(largest, nullptr);
  EXPECT_EQ(largest->job.cluster.nodes, 1);
}

TEST(Capacity, HasNoAnswersWhereNothingFits) {
  Job job = small_dense_job();
  job.model.layers = 32;
  const auto points = plan_capacity(job, {.sequence_length = {512, 1024}}, {}, by_size);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_FALSE(points[0].best);
  EXPECT_EQ(largest_model(points, Wanted::fits), nullptr);
  EXPECT_EQ(longest_sequence(points, Wanted::fits), nullptr);
}

TEST(Capacity, EndsEarlyWhenInterrupted) {
  const std::atomic<bool> interrupted = true;
  SearchOptions options;
  options.interrupted = &interrupted;
  EXPECT_TRUE(plan_capacity(small_dense_job(), {.nodes = {1, 2}}, options, by_devices).empty());
}

TEST(Capacity, ReportsProgressOverAllSizes) {
  double last = 0;
  SearchOptions options{.threads = 1};
  options.progress = [&last](double fraction) {
    EXPECT_GE(fraction, last);
    EXPECT_LE(fraction, 1);
    last = fraction;
  };
  plan_capacity(small_moe_job(), {.nodes = {2, 4, 8}}, options, by_devices);
  EXPECT_GT(last, 0.7);
}

}  // namespace
}  // namespace trainyard
