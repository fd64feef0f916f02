// Copies beside the collectives of sequence parallelism (Stack::copies_sharded_sequences), counted
// by hand: Llama 3.1 8B with 4,096 tokens per micro-batch and t = 8, on a device of 1 TB/s without
// launch times. A whole tensor has 4,096 · 4,096 = 2^24 elements, so a copy reads and writes 2^26
// bytes in 16 bits and 2^25 in 8, at a microsecond per 10^6 bytes.
#include <gtest/gtest.h>

#include "model/cost/estimate.h"
#include "model/cost/layer_cost.h"
#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

constexpr double kCopy = 67'108'864 / 1e12;  // seconds for 16 bits
constexpr double kCast = 33'554'432 / 1e12;  // seconds for 8 bits

PreparedJob job_with(bool copies, const char* precision = "bf16") {
  Training training = modern(4096);
  training.global_batch = 8;
  training.precision = *find_precision_recipe(precision);
  training.stack.copies_sharded_sequences = copies;
  training.stack.quantised_gathers = true;
  training.stack.memory_traffic = 1.8;  // applies to partly fused kernels, not to a copy
  training.stack.host_layer_forward = training.stack.host_microbatch = Seconds(0);
  training.stack.selective = SelectiveRecompute::every_second_matmul;
  training.stack.recompute_stops_early = true;
  return prepare({llama_8b(), example_cluster(ideal_device(), 1), training});
}

StageCosts costs_of(const PreparedJob& job, const PlanRequest& request) {
  const Plan plan = legal_plan(job, request);
  return stage_costs(job, plan, plan_links(job, plan));
}

struct Added {
  double forward, backward, full, selective, embedding, head;
};

// Seconds that the copies add to the passes of a layer, and to both passes of the ends of the
// network.
Added added_by_copies(const PlanRequest& request, const char* precision = "bf16") {
  const StageCosts with = costs_of(job_with(true, precision), request);
  const StageCosts without = costs_of(job_with(false, precision), request);
  const auto more = [](const LayerCost& a, const LayerCost& b) {
    return (a.forward.compute + a.input_gradient.compute - b.forward.compute -
            b.input_gradient.compute)
        .value();
  };
  const LayerCost& layer = with.layers[0];
  const LayerCost& plain = without.layers[0];
  EXPECT_EQ(layer.weight_gradient.compute, plain.weight_gradient.compute);
  EXPECT_EQ(layer.forward.tensor_parallel, plain.forward.tensor_parallel);
  return {(layer.forward.compute - plain.forward.compute).value(),
          (layer.input_gradient.compute - plain.input_gradient.compute).value(),
          (layer.full_recompute.recompute - plain.full_recompute.recompute).value(),
          (layer.selective_recompute.recompute - plain.selective_recompute.recompute).value(),
          more(with.embedding, without.embedding),
          more(with.head, without.head)};
}

constexpr double kRounding = 1e-12;

// A layer has two gathers and two scatters each way. Full recomputation with an early stop repeats
// all except the last scatter; torchtitan's selective recomputation repeats the gathers.
TEST(SequenceCopies, AreAReadAndAWriteOfTheWholeTensorForEveryCollective) {
  const Added added = added_by_copies({.tensor_parallel = 8, .sequence_parallel = true});
  EXPECT_NEAR(added.forward, 4 * kCopy, kRounding);
  EXPECT_NEAR(added.backward, 4 * kCopy, kRounding);
  EXPECT_NEAR(added.full, 3 * kCopy, kRounding);
  EXPECT_NEAR(added.selective, 2 * kCopy, kRounding);
  EXPECT_NEAR(added.embedding, 2 * kCopy, kRounding);
  EXPECT_NEAR(added.head, 2 * kCopy, kRounding);
}

// With fp8, gathers carry casts and sums do not. Nothing is cast at the ends of the network.
TEST(SequenceCopies, OfGatheredCastsAreOfOneByteAnElement) {
  const Added added = added_by_copies({.tensor_parallel = 8, .sequence_parallel = true}, "fp8");
  EXPECT_NEAR(added.forward, 2 * kCast + 2 * kCopy, kRounding);
  EXPECT_NEAR(added.backward, 2 * kCast + 2 * kCopy, kRounding);
  EXPECT_NEAR(added.full, 2 * kCast + kCopy, kRounding);
  EXPECT_NEAR(added.selective, 2 * kCast, kRounding);
  EXPECT_NEAR(added.embedding, 2 * kCopy, kRounding);
  EXPECT_NEAR(added.head, 2 * kCopy, kRounding);
}

TEST(SequenceCopies, AreNoneWithoutSequenceParallelism) {
  for (const int tensor : {1, 8}) {
    const Added added = added_by_copies({.tensor_parallel = tensor, .sequence_parallel = false});
    EXPECT_NEAR(added.forward + added.backward + added.embedding + added.head, 0, kRounding)
        << tensor;
  }
}

// While a sum is copied, both the sum and its copy exist: n·h elements of 16 bits more.
TEST(SequenceCopies, HaveATensorMoreInBackward) {
  const PlanRequest request{.tensor_parallel = 8, .sequence_parallel = true};
  const Bytes more = costs_of(job_with(true), request).layers[0].gradients -
                     costs_of(job_with(false), request).layers[0].gradients;
  EXPECT_EQ(more.value(), 2 * 16'777'216);
}

// 32 layers with eight copies and two ends with two, for each of eight micro-batches.
TEST(SequenceCopies, AreInTheStepOfTheEstimate) {
  const PlanRequest request{.tensor_parallel = 8, .sequence_parallel = true, .zero_stage = 0};
  const auto step = [&](bool copies) {
    const PreparedJob job = job_with(copies);
    const Plan plan = legal_plan(job, request);
    EXPECT_EQ(plan.microbatches, 8);
    return estimate(job, plan);
  };
  const Estimate with = step(true), without = step(false);
  const Breakdown& parts = with.breakdown;
  EXPECT_NEAR((parts.compute - without.breakdown.compute).value(), 8 * 32 * 8 * kCopy, 1e-9);
  EXPECT_NEAR((parts.embedding_head - without.breakdown.embedding_head).value(), 8 * 4 * kCopy,
              1e-9);
}

}  // namespace
}  // namespace trainyard
