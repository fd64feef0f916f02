// A step played from its program, compared with the analytic estimate, which prices the same
// kernels and closed forms, and with counts by hand.
#include "simulator/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "simulator/reading/critical_path.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"
#include "tests/simulator/disturbed_step.h"

namespace trainyard {
namespace {

StepSimulation played(const PreparedJob& job, const Plan& plan, const StepOptions& options = {}) {
  auto simulation = simulate(job, plan, options);
  if (!simulation) ADD_FAILURE() << simulation.error().where << ": " << simulation.error().message;
  return *std::move(simulation);
}

PlanRequest degrees(int tensor, int pipeline) {
  PlanRequest request;
  request.tensor_parallel = tensor;
  request.pipeline_parallel = pipeline;
  request.zero_stage = 0;
  return request;
}

TEST(Step, IsGivenUpWhenItIsAskedTo) {
  const PreparedJob job = gpt3_on_a100(8, 32);
  const Plan plan = legal_plan(job, degrees(8, 4));
  const std::atomic<bool> asked = true, not_asked = false;
  const auto given_up = simulate(job, plan, {.interrupted = &asked});
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().message, "interrupted");
  EXPECT_TRUE(simulate(job, plan, {.interrupted = &not_asked}));
}

TEST(Step, SaysHowFarItIs) {
  const PreparedJob job = gpt3_on_a100(8, 32);
  std::vector<double> told;
  const auto simulation =
      simulate(job, legal_plan(job, degrees(8, 4)),
               {.fold = Fold::off, .progress = [&](double fraction) { told.push_back(fraction); }});
  ASSERT_TRUE(simulation);
  ASSERT_GT(told.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_GE(told.front(), 0);
  EXPECT_LT(told.front(), 0.5);
  EXPECT_GT(told.back(), 0.5);
  EXPECT_LE(told.back(), 1);
}

// On one rank nothing waits, and both computations add up the same kernels.
TEST(Step, OfOneRankTakesWhatTheEstimateSays) {
  PreparedJob job = llama_8b_on_h100(1, 8);
  job.job.cluster.devices_per_node = job.job.cluster.nvlink_domain = 1;
  job = prepare(job.job);
  const Plan plan = legal_plan(job, degrees(1, 1));
  const Estimate expected = estimate(job, plan);
  const StepSimulation simulation = played(job, plan);
  EXPECT_NEAR(simulation.step_time / expected.step_time, 1, 1e-6);
  EXPECT_NEAR(simulation.breakdown.compute / expected.breakdown.compute, 1, 1e-6);
  EXPECT_NEAR(simulation.breakdown.launch.value(), expected.breakdown.launch.value(), 1e-9);
}

// Plays a step on one rank of a device so slow that the step takes `days` days by the estimate.
Expected<StepSimulation> played_for(double days, const StepConditions& conditions = {}) {
  PreparedJob job = llama_8b_on_h100(1, 8);
  job.job.cluster.devices_per_node = job.job.cluster.nvlink_domain = 1;
  job.job.training.stack.step_overhead = Seconds(0);
  const auto at_speed = [&](double speed) {
    Device& device = job.job.cluster.device = ideal_device();
    device.memory_bandwidth *= speed;
    device.rates.experts.per_multiprocessor *= speed;
    for (AttentionRates& of : device.rates.attention) of.per_multiprocessor *= speed;
    for (GemmRates& of : device.rates.gemm) of.per_multiprocessor *= speed;
    for (FlopsPerSecond& peak : device.peak) peak *= speed;
    job = prepare(job.job);
  };
  at_speed(1);
  const Plan plan = legal_plan(job, degrees(1, 1));
  at_speed(estimate(job, plan).step_time / Seconds(days * 86400));
  EXPECT_NEAR(estimate(job, plan).step_time.value() / (days * 86400), 1, 1e-3);
  return simulate(job, plan, {.conditions = conditions});
}

// The clock holds 106.75 days. A step that is clearly longer is refused, unless something may
// shorten it.
TEST(Step, IsRefusedBeyondTheClock) {
  const auto before = played_for(106);
  ASSERT_TRUE(before);
  EXPECT_NEAR(before->step_time.value() / 86400, 106, 0.2);
  const auto played = played_for(108);
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().message,
            "found a longer step, allowed up to 106 days, the range of its clock");
  const auto estimated = played_for(129);
  ASSERT_FALSE(estimated);
  EXPECT_EQ(estimated.error().where, "simulation");
  EXPECT_EQ(
      estimated.error().message,
      "found a step of 129 days by the estimate, allowed up to 106 days, the range of its clock");
  const auto twice_as_fast = played_for(129, {.stragglers = {{.rank = 0, .speed = 2}}});
  ASSERT_TRUE(twice_as_fast);
  EXPECT_NEAR(twice_as_fast->step_time.value() / 86400, 64.5, 0.2);
}

// Tensor parallelism inside a node has no other traffic beside it. Its calls take what the device's
// curves and the algorithms' closed forms give, to the rounding of the clock.
TEST(Step, ExposesTheTensorParallelTrafficOfTheEstimate) {
  for (const bool sequence_parallel : {false, true}) {
    const PreparedJob job = gpt3_on_a100(1, 4);
    PlanRequest request = degrees(8, 1);
    request.sequence_parallel = sequence_parallel;
    const Plan plan = legal_plan(job, request);
    const Breakdown expected = estimate(job, plan).breakdown;
    const Breakdown found = played(job, plan).breakdown;
    EXPECT_NEAR(found.tensor_parallel / expected.tensor_parallel, 1, 1e-3);
    EXPECT_NEAR(found.compute / expected.compute, 1, 1e-6);
  }
}

// torchtitan with tensor parallelism copies what it gathers and scatters: forward, backward, and
// again where that is recomputed. These kernels lengthen the estimate and the simulation by the
// same time.
TEST(Step, CopiesWhatIsGatheredAndScatteredAsTheEstimateDoes) {
  struct Both {
    Estimate expected;
    StepSimulation found;
  };
  const auto both = [](const char* precision, RecomputeMode mode, bool copies) {
    Job job = llama_8b_on_h100(1, 16).job;
    job.training.precision = *find_precision_recipe(precision);
    job.training.stack.copies_sharded_sequences = copies;
    job.training.stack.quantised_gathers = true;
    job.training.stack.selective = SelectiveRecompute::every_second_matmul;
    job.training.stack.recompute_stops_early = true;
    const PreparedJob prepared = prepare(job);
    PlanRequest request = degrees(8, 1);
    request.sequence_parallel = true;
    request.recompute = {mode, 0};
    const Plan plan = legal_plan(prepared, request);
    return Both{estimate(prepared, plan), played(prepared, plan)};
  };
  for (const char* precision : {"bf16", "fp8"}) {
    for (const auto mode : {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full}) {
      const Both with = both(precision, mode, true), without = both(precision, mode, false);
      const Breakdown &expected = with.expected.breakdown, &found = with.found.breakdown;
      EXPECT_NEAR(found.compute / expected.compute, 1, 1e-6);
      EXPECT_NEAR(found.embedding_head / expected.embedding_head, 1, 1e-6);
      const Seconds longer = with.expected.step_time - without.expected.step_time;
      ASSERT_GT(longer, 0.02 * without.expected.step_time);
      EXPECT_NEAR((with.found.step_time - without.found.step_time) / longer, 1, 0.03);
    }
  }
}

// What communication takes from the compute beside it is the device's figure if it was measured,
// otherwise the stack's. Both computations price it alike, and a larger figure makes the step
// longer.
TEST(Step, IsSlowedBesideCommunicationAsTheDeviceWasMeasured) {
  const auto step = [](double of_stack, std::optional<double> of_device) {
    Job job = job_of(1, 8, 64).job;
    job.training.stack.overlap_slowdown = of_stack;
    job.cluster.device.overlap_slowdown = of_device;
    const PreparedJob prepared = prepare(job);
    Plan plan = legal_plan(prepared, degrees(1, 1));
    plan.overlap.data_parallel = true;
    return std::pair(played(prepared, plan).step_time, estimate(prepared, plan).step_time);
  };
  EXPECT_EQ(step(0, 0.75), step(0.75, std::nullopt));
  EXPECT_EQ(step(0.75, 0), step(0, std::nullopt));
  EXPECT_GT(step(0, 0.75).first, step(0, std::nullopt).first);
  EXPECT_GT(step(0, 0.75).second, step(0, std::nullopt).second);
}

// Exchanges beside another micro-batch's compute show only what that does not cover (DeepSeek-V3
// report, section 3.2.1), whatever share the fused kernels of tensor parallelism hide. Over a slow
// network most of them shows.
TEST(Step, ShowsOfOverlappedExchangesWhatComputeDoesNotCover) {
  Job job = job_of(8, 1, 32).job;
  job.model = mixtral_8x7b();
  job.model.layers = 4;
  job.cluster.inter.bandwidth = job.cluster.inter.bandwidth / 10;
  job.training.stack.tensor_parallel_hidden = 1;
  job.training.stack.overlap_slowdown = 0;
  const PreparedJob prepared = prepare(job);
  PlanRequest request = degrees(1, 1);
  request.expert_parallel = 8;
  Plan plan = legal_plan(prepared, request);
  plan.overlap.expert_parallel = true;
  const Breakdown expected = estimate(prepared, plan).breakdown;
  ASSERT_GT(expected.expert_parallel, expected.compute);
  const Breakdown found = played(prepared, plan).breakdown;
  EXPECT_NEAR(found.expert_parallel / expected.expert_parallel, 1, 0.02);
}

// In a pair of passes that run side by side, the exchange of one overlaps with the other's compute
// (DeepSeek-V3 report, section 3.2.1). If compute loses nothing and is longer than the exchanges,
// pairs show none of them. The last passes do not form pairs.
TEST(Step, HidesTheExchangesOfPassesSideBySide) {
  Job job = job_of(8, 8, 128).job;
  job.model = mixtral_8x7b();
  job.model.layers = 8;
  job.training.stack.overlap_slowdown = 0;
  const PreparedJob prepared = prepare(job);
  const auto exchanges = [&](const char* schedule) {
    PlanRequest request = degrees(1, 4);
    request.expert_parallel = 8;
    request.schedule = schedule;
    return played(prepared, legal_plan(prepared, request)).breakdown.expert_parallel;
  };
  const Plan plan = legal_plan(prepared, {.pipeline_parallel = 4, .expert_parallel = 8});
  const double pairs = find_schedule("dualpipe")->pairs({4, 1, plan.microbatches}, 0);
  EXPECT_NEAR(exchanges("dualpipe") / exchanges("zb-h1"), 1 - pairs / plan.microbatches, 0.05);
}

// The serial part that each rank of a sharding group adds to the update comes before the gather of
// the updated weights. Steps without a barrier follow each other at the end of that gather.
TEST(Step, EndsWithTheGatherOfUpdatedWeights) {
  for (const char* schedule : {"1f1b", "zb-h2"}) {
    Job job = job_of(1, 8, 32).job;
    PlanRequest request = degrees(1, 1);
    request.zero_stage = 1;
    request.schedule = schedule;
    request.overlap.data_parallel = false;
    const auto step = [&](double each) {
      job.training.stack.sharded_update_per_rank = Seconds(each);
      const PreparedJob prepared = prepare(job);
      const Plan plan = legal_plan(prepared, request);
      const StepSimulation simulation = played(prepared, plan);
      const Seconds other = job.training.stack.step_overhead;
      EXPECT_EQ(simulation.step_time, to_seconds(simulation.timeline.makespan) + other) << schedule;
      return simulation.step_time / Seconds(1);
    };
    EXPECT_NEAR(step(2) - step(0), 2 * 8, 1e-6) << schedule;
  }
}

// An unsharded state has no serial part; a sharded one takes a second for each of its ranks. Both
// computations say so.
TEST(Step, HasTheSerialPartOfAShardedUpdateAsTheEstimate) {
  for (const int ranks : {1, 8}) {
    Job job = job_of(1, ranks, 32).job;
    PlanRequest request = degrees(1, 1);
    request.zero_stage = 1;
    const auto steps = [&](double each) {
      job.training.stack.sharded_update_per_rank = Seconds(each);
      const PreparedJob prepared = prepare(job);
      const Plan plan = legal_plan(prepared, request);
      return std::pair(played(prepared, plan).step_time, estimate(prepared, plan).step_time);
    };
    const auto [played_without, estimated_without] = steps(0);
    const auto [played_with, estimated_with] = steps(1);
    const double expected = ranks > 1 ? ranks : 0;
    EXPECT_NEAR((played_with - played_without).value(), expected, 1e-6) << ranks;
    EXPECT_NEAR((estimated_with - estimated_without).value(), expected, 1e-6) << ranks;
  }
}

TEST(Step, IsTheSumOfItsBreakdown) {
  const PreparedJob job = gpt3_on_a100(8, 32);
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
    PlanRequest request = degrees(8, 4);
    request.schedule = schedule;
    const StepSimulation simulation = played(job, legal_plan(job, request));
    EXPECT_NEAR(simulation.breakdown.total() / simulation.step_time, 1, 1e-9) << schedule;
  }
}

TEST(CriticalPath, FillsTheStepWithoutGaps) {
  const PreparedJob job = gpt3_on_a100(8, 32);
  const StepSimulation simulation = played(job, legal_plan(job, degrees(8, 4)));
  const auto path = critical_path(simulation.step, simulation.timeline);
  Picoseconds at{0};
  for (const PathStep& step : path) {
    EXPECT_EQ(step.start, at);
    at = step.end;
  }
  EXPECT_EQ(at, simulation.timeline.makespan);
}

// The last stage's compute takes twice as long, and all ranks wait for it.
TEST(Step, WaitsForASlowRank) {
  const PreparedJob job = llama_8b_on_h100(1, 8);
  const Plan plan = legal_plan(job, degrees(2, 2));
  const StepSimulation alike = played(job, plan);
  StepOptions options;
  options.conditions.stragglers = {{.rank = 7, .speed = 0.5}};  // of the last stage
  const StepSimulation slow = played(job, plan, options);
  EXPECT_FALSE(slow.step.folded());
  EXPECT_EQ(slow.unfolded_because, "ranks differ in speed");
  const Seconds computed = alike.stages.back().busy;
  EXPECT_NEAR((slow.step_time - alike.step_time) / computed, 1, 0.02) << computed.value();
  EXPECT_EQ(slow.rank, 7);
}

// The program's buffers hold what the estimate's closed forms count (handbook §7).
TEST(Step, HoldsTheMemoryOfTheEstimate) {
  const PreparedJob job = gpt3_on_a100(8, 64);
  PlanRequest request = degrees(8, 8);
  request.recompute = {RecomputeMode::selective, 0};
  const Plan plan = legal_plan(job, request);
  const Estimate expected = estimate(job, plan);
  const Estimate found = as_estimate(job, plan, played(job, plan));
  EXPECT_NEAR(found.peak_allocated / expected.peak_allocated, 1, 0.02);
  EXPECT_EQ(found.fullest_stage, 0);
}

// The same for each class of memory: on every stage, with and without recomputation and sharded
// states.
TEST(Step, HoldsTheMemoryOfTheEstimateInItsClasses) {
  const PreparedJob job = gpt3_on_a100(8, 64);
  Bytes logits;
  for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full}) {
    PlanRequest request = degrees(8, 8);
    request.recompute = {mode, 0};
    const Plan plan = legal_plan(job, request);
    const Estimate expected = estimate(job, plan);
    const Estimate found = as_estimate(job, plan, played(job, plan));
    for (const std::size_t stage : {std::size_t{0}, expected.stages.size() - 1}) {
      const MemoryByKind& held = found.stages[stage].memory.at_peak;
      const MemoryByKind& counted = expected.stages[stage].memory.at_peak;
      const Bytes little = 0.02 * counted.allocated();
      for (const auto kind :
           {&MemoryByKind::parameters, &MemoryByKind::gradients, &MemoryByKind::optimizer,
            &MemoryByKind::activations, &MemoryByKind::recomputation, &MemoryByKind::logits}) {
        EXPECT_NEAR((held.*kind).value(), (counted.*kind).value(), little.value()) << stage;
      }
    }
    logits += found.stages.back().memory.at_peak.logits;
    EXPECT_EQ(found.stages[0].memory.at_peak.recomputation > Bytes(0), mode == RecomputeMode::full);
  }
}

// Both computations have the same kernels; a longer step adds what an idle device draws.
TEST(Step, DrawsTheEnergyOfTheEstimate) {
  const PreparedJob job = gpt3_on_a100(8, 64);
  const Plan plan = legal_plan(job, degrees(8, 8));
  const Estimate expected = estimate(job, plan);
  const Estimate found = as_estimate(job, plan, played(job, plan));
  const double longer = found.step_time / expected.step_time;
  ASSERT_NEAR(longer, 1, 0.05);
  EXPECT_NEAR(*found.energy_per_step / *expected.energy_per_step, 1, std::abs(longer - 1) + 1e-9);
}

// Peak memory under ZeRO-2 with the NICs' bandwidth scaled, down to links so slow that every pass
// waits for its reductions.
Bytes peak_under_zero_2(const PlanRequest& request, std::int64_t batch, double bandwidth_share) {
  PreparedJob job = llama_8b_on_h100(2, batch);
  job.job.cluster.inter.bandwidth *= bandwidth_share;
  job = prepare(job.job);
  PlanRequest sharded = request;
  sharded.zero_stage = 2;
  sharded.micro_batch = 1;
  sharded.overlap.data_parallel = true;
  const StepSimulation simulation = played(job, legal_plan(job, sharded));
  Bytes peak;
  for (const StageUse& stage : simulation.stages) peak = std::max(peak, stage.memory.peak.bytes);
  return peak;
}

// FSDP2 (post_backward) waits for the previous reduce-scatter, so at most two units have whole
// gradients. By hand for Llama-3.1-8B: the head's 128,256 · 4,096 and a layer's 218,112,000.
TEST(Step, HoldsWholeGradientsOfTwoUnitsHoweverSlowTheirReduction) {
  const Bytes two_units(4.0 * (128256.0 * 4096 + 218112000));
  const PlanRequest request = degrees(1, 1);
  const Bytes slow = peak_under_zero_2(request, 128, 0.01);
  EXPECT_LE(slow, peak_under_zero_2(request, 128, 1) + two_units);
  EXPECT_LE(slow, 1.001 * peak_under_zero_2(request, 64, 0.01));
}

}  // namespace
}  // namespace trainyard
