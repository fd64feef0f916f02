// What lies in host memory is copied over the host link. The bytes are counted by hand, and the
// link is so slow that the copies outlast the passes of the same plan without offloading.
#include "model/cost/memory/offload.h"

#include <gtest/gtest.h>

#include "model/cost/estimate.h"
#include "model/cost/sharding/data_parallel.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

constexpr double kParameters = 8030261248;  // Llama-3.1-8B
constexpr OffloadTarget kHost = OffloadTarget::host;

struct Offloaded {
  PreparedJob job = llama_8b_on_h100();
  Plan plan, without;
  PassTimes passes;  // of the only stage, without offloading

  Offloaded(Offload offload, double bandwidth, int zero_stage = 0) {
    job.job.cluster.device.host_bandwidth = BytesPerSecond(bandwidth);
    PlanRequest request{.zero_stage = zero_stage};
    without = legal_plan(job, request);
    request.offload = offload;
    plan = legal_plan(job, request);
    passes = estimate(job, without).stages[0].passes;
  }
  double shown() const { return estimate(job, plan).breakdown.offload.value(); }
};

constexpr double kMatrix = 128256.0 * 4096;  // weights of the embedding, and of the head
constexpr double kLayer = (kParameters - 2 * kMatrix) / 32;

// Each unit's weights are copied beside the unit before it; those of the first unit, beside the
// last unit of the previous pass, or alone before the first pass.
TEST(Offload, FetchesTheWeightsForEveryPass) {
  const Offloaded weights({.parameters = kHost}, 1e9);
  const double one = 2 * 2 * kParameters / 1e9 - weights.passes.total().value();
  const double expected = weights.plan.microbatches * one + 2 * kMatrix / 1e9;
  EXPECT_NEAR(weights.shown(), expected, 1e-9 * expected);
}

// On this link the passes beside the copies take no time, so the copies run one after the other.
// The second layer also waits for the head's gradients, and the end of the step for the
// embedding's.
TEST(Offload, CopiesTheGradientsOfEveryMicroBatch) {
  const Offloaded gradients({.gradients = kHost}, 1e6);
  const double bytes = gradients.job.job.training.stack.gradient_bytes;
  const double one = kParameters + (kMatrix - 2 * kLayer);
  const double expected = bytes * (gradients.plan.microbatches * one + kMatrix) / 1e6;
  EXPECT_NEAR(gradients.shown(), expected, 1e-3 * expected);
}

TEST(Offload, FetchesAShardOfTheWeightsUnderZeRO3) {
  const Offloaded whole({.parameters = kHost}, 1e9);
  const Offloaded shard({.parameters = kHost}, 1e9 / 8, 3);
  const StageParameters stage{.dense = kParameters};
  const auto copies = [&](const Offloaded& of) {
    return offload_copies(of.job, of.plan, stage, {}).beside.forward.value();
  };
  EXPECT_DOUBLE_EQ(copies(whole), copies(shard));
}

// Passes of a second each on a stage of one layer between other stages. The link has four seconds
// of copies in one direction and three in the other.
TEST(Offload, TakesAtLeastWhatEachWayOfTheLinkTakes) {
  const Seconds one(1);
  OffloadCopies copies{.beside = {one, one * 2, one}, .weights = one, .activations = one};
  const PassTimes passes{one, one, one};
  const PassTimes exposed = exposed_copies(copies, 1, passes, {});
  EXPECT_DOUBLE_EQ((passes.total() + exposed.total()).value(), 4);
}

// Only the copy before the first pass and the one after the last pass show.
TEST(Offload, HidesBehindThePassesWhereTheLinkIsFast) {
  const Offloaded states({.parameters = kHost, .gradients = kHost}, 1e15);
  const double bytes = 2 + states.job.job.training.stack.gradient_bytes;
  EXPECT_NEAR(states.shown(), bytes * kMatrix / 1e15, 1e-12);
}

TEST(Offload, OfMoreIsNeverFaster) {
  for (const double bandwidth : {1e9, 25e9, 450e9}) {
    const Offloaded weights({.parameters = kHost}, bandwidth);
    const Offloaded both({.parameters = kHost, .activations = kHost}, bandwidth);
    EXPECT_LE(weights.shown(), both.shown());
    EXPECT_LE(estimate(weights.job, weights.without).step_time,
              estimate(weights.job, weights.plan).step_time);
  }
}

TEST(Offload, OnDisksIsNoFasterThanTheDisks) {
  Offloaded disks({.parameters = OffloadTarget::nvme}, 55e9);
  disks.job.job.cluster.nvme_bandwidth = BytesPerSecond(8e9);  // 1 GB/s for each of 8 devices
  const Offloaded slow({.parameters = kHost}, 1e9);
  EXPECT_DOUBLE_EQ(disks.shown(), slow.shown());
}

// Bytes per parameter that cross the host link for the update: gradients (4 bytes) and weights (2),
// there and back. If the host updates, what already lies there does not cross. If the device
// updates, gradients cross twice, for the norm and for the update, and weights come and go.
TEST(Offload, CrossesOnceAStepWhereTheOptimizerLiesElsewhere) {
  const auto crossing = [](Offload offload, int zero_stage = 0) {
    Offloaded job(offload, 1e9, zero_stage);
    job.plan.overlap.data_parallel = true;  // gradients are added up before they go
    const StageParameters stage{.dense = kParameters};
    return optimizer_crossing(job.job, job.plan, stage).value() * 1e9 / kParameters;
  };
  const double gradient = llama_8b_on_h100().job.training.stack.gradient_bytes;
  EXPECT_EQ(crossing({}), 0);
  EXPECT_DOUBLE_EQ(crossing({.optimizer = kHost}), gradient + 2);
  EXPECT_DOUBLE_EQ(crossing({.gradients = kHost, .optimizer = kHost}), 2);
  EXPECT_EQ(crossing({.parameters = kHost, .gradients = kHost, .optimizer = kHost}), 0);
  EXPECT_DOUBLE_EQ(crossing({.parameters = kHost}), 2 * 2);
  EXPECT_DOUBLE_EQ(crossing({.gradients = kHost}), 2 * gradient);
  // Each of eight ranks updates its part; the whole weights go back.
  EXPECT_DOUBLE_EQ(crossing({.parameters = kHost}, 1), 2.0 / 8 + 2);
  EXPECT_DOUBLE_EQ(crossing({.gradients = kHost}, 1), 2 * gradient / 8);
  EXPECT_DOUBLE_EQ(crossing({.parameters = kHost}, 3), 2 * 2.0 / 8);
}

// Traffic of parameters that stalls the kernels does not stall the copies. So where copies of
// activations outlast the passes, less of them shows, by as much as the traffic takes; except for
// two of 32 layers, whose copies nothing waits for.
TEST(Offload, GoesOnBesideTrafficThatKernelsWaitFor) {
  Offloaded slow({.activations = kHost}, 1e9);
  slow.plan.overlap.data_parallel = false;
  slow.plan.zero_stage = 1;
  const Breakdown once = estimate(slow.job, slow.plan).breakdown;
  slow.plan.zero_stage = 3;
  const Breakdown every = estimate(slow.job, slow.plan).breakdown;
  EXPECT_GT(every.data_parallel, 3.0 * once.data_parallel);
  EXPECT_NEAR((once.offload - every.offload) / every.data_parallel, 31.0 / 32, 1.0 / 32);
}

}  // namespace
}  // namespace trainyard
