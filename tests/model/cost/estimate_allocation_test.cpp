// A search calls the estimate millions of times. Once an estimate's result object has been used
// before, it takes nothing from the heap. The test is a program of its own because it counts every
// operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "model/cost/estimate.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/support/networks.h"

namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): operator new has no arguments
std::atomic<std::int64_t> allocations = 0;

}  // namespace

// Not inlined: GCC otherwise pairs the inlined std::free with the call of operator new and warns of
// a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace trainyard {
namespace {

// Llama-3.1-405B on 16,384 H100.
PreparedJob llama_405b_job() {
  Job job;
  job.model = llama_405b();
  job.cluster = example_cluster(example_h100(), 2048);
  job.training.global_batch = 2048;
  job.training.sequence_length = 8192;
  job.training.precision = *find_precision_recipe("bf16");
  job.training.optimizer = *find_optimizer("adamw");
  return prepare(job);
}

std::int64_t allocations_of_second_estimate(const PreparedJob& job, const PlanRequest& request) {
  const Plan plan = legal_plan(job, request);
  Estimate out;
  estimate(job, plan, out);
  const std::int64_t before = allocations;
  estimate(job, plan, out);
  return allocations - before;
}

std::int64_t allocations_of_estimator(const PreparedJob& job, const PlanRequest& request) {
  const Plan plan = legal_plan(job, request);
  const Estimator estimator(job);
  Estimate out;
  estimator.estimate(plan, out);
  const std::int64_t before = allocations;
  estimator.estimate(plan, out);
  return allocations - before;
}

TEST(EstimateAllocation, IsCounted) {
  const std::int64_t before = allocations;
  void* volatile memory = ::operator new(8);  // volatile: an unused pair may be optimised away
  ::operator delete(memory);
  EXPECT_EQ(allocations - before, 1);
}

TEST(EstimateAllocation, IsNoneForAPlanOf16384Devices) {
  const PreparedJob job = llama_405b_job();
  EXPECT_EQ(allocations_of_second_estimate(job, {.tensor_parallel = 8, .pipeline_parallel = 16}),
            0);
  EXPECT_EQ(allocations_of_estimator(job, {.tensor_parallel = 8, .pipeline_parallel = 16}), 0);
  EXPECT_EQ(allocations_of_second_estimate(
                job, {.tensor_parallel = 8, .pipeline_parallel = 8, .virtual_stages = 4}),
            0);
  EXPECT_EQ(allocations_of_second_estimate(
                job, {.tensor_parallel = 4, .context_parallel = 4, .pipeline_parallel = 32}),
            0);
  PlanRequest mixed{.tensor_parallel = 8, .pipeline_parallel = 16};
  mixed.recompute_per_stage.assign(16, {});
  mixed.recompute_per_stage[0] = {RecomputeMode::full, 2};
  EXPECT_EQ(allocations_of_second_estimate(job, mixed), 0);
}

// All other schedules are played, and so are zero-bubble schedules with fewer than 2p − 1
// micro-batches.
TEST(EstimateAllocation, IsNoneForEveryScheduleWithAClosedForm) {
  PreparedJob job = llama_405b_job();
  job.job.training.global_batch *= 2;
  job = prepare(job.job);
  for (const Schedule* schedule : schedules()) {
    if (schedule->closed_span == nullptr) continue;
    PlanRequest request{.tensor_parallel = 8,
                        .pipeline_parallel = 8,
                        .virtual_stages = schedule->needs_chunks ? 2 : 1,
                        .schedule = std::string(schedule->name)};
    EXPECT_EQ(allocations_of_second_estimate(job, request), 0) << schedule->name;
  }
}

TEST(EstimateAllocation, IsNoneWhenALargerPlanWasPricedBefore) {
  const PreparedJob job = llama_405b_job();
  Estimate out;
  estimate(job, legal_plan(job, {.tensor_parallel = 8, .pipeline_parallel = 32}), out);
  const Plan smaller = legal_plan(job, {.tensor_parallel = 8, .pipeline_parallel = 4});
  const std::int64_t before = allocations;
  estimate(job, smaller, out);
  EXPECT_EQ(allocations - before, 0);
}

}  // namespace
}  // namespace trainyard
