#include "model/cost/kernel_times.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "model/cost/estimate.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

// More ways to cut a layer than the table of kernel times has room for.
std::vector<LayerShard> many_shards() {
  std::vector<LayerShard> shards;
  for (int micro_batch = 1; micro_batch <= 600; ++micro_batch) {
    for (const int tensor : {1, 2, 4, 8}) {
      shards.push_back({.tensor = tensor, .micro_batch = micro_batch});
      shards.push_back({.tensor = tensor, .sequence_parallel = true, .micro_batch = micro_batch});
    }
  }
  return shards;
}

constexpr TimedUnit kUnits[] = {{.kind = 0}, {TimedUnit::End::embedding}, {TimedUnit::End::head}};

void expect_times_of(const PreparedJob& job, const KernelTimeTable& table,
                     const std::vector<LayerShard>& shards) {
  for (const LayerShard& shard : shards) {
    for (const TimedUnit unit : kUnits) {
      const KernelTimes anew = kernel_times(job, shard, unit);
      const KernelTimes kept = table.times(shard, unit);
      ASSERT_EQ(kept.all.forward, anew.all.forward) << shard.tensor << " " << shard.micro_batch;
      ASSERT_EQ(kept.all.input_gradient, anew.all.input_gradient);
      ASSERT_EQ(kept.saved, anew.saved);
    }
  }
}

TEST(KernelTimeTable, AnswersAsIfTimedAnewEvenWhereItHasNoRoom) {
  const PreparedJob job = llama_8b_on_h100();
  const KernelTimeTable table(job);
  const std::vector<LayerShard> shards = many_shards();
  expect_times_of(job, table, shards);
  expect_times_of(job, table, shards);
}

TEST(KernelTimeTable, IsSharedByThreads) {
  const PreparedJob job = llama_8b_on_h100();
  const KernelTimeTable table(job);
  const std::vector<LayerShard> shards = many_shards();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { expect_times_of(job, table, shards); });
  }
}

TEST(Estimator, AnswersAsTheEstimateOfOnePlanDoes) {
  const PreparedJob job = gpt3_on_a100();
  const Estimator estimator(job);
  Estimate shared;
  for (const int pipeline : {1, 2, 4, 8, 1, 2}) {
    for (const int micro_batch : {1, 2, 1}) {
      const Plan plan = legal_plan(
          job, {.tensor_parallel = 8, .pipeline_parallel = pipeline, .micro_batch = micro_batch});
      estimator.estimate(plan, shared);
      const Estimate alone = estimate(job, plan);
      EXPECT_EQ(shared.step_time, alone.step_time);
      EXPECT_EQ(shared.peak_memory, alone.peak_memory);
      EXPECT_EQ(shared.breakdown.compute, alone.breakdown.compute);
    }
  }
}

}  // namespace
}  // namespace trainyard
