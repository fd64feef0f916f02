#include "model/cost/reliability.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/cost/example_devices.h"
#include "tests/model/cost/example_jobs.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Seconds kLlamaMtbf = 54.0 / 419 * kDay;  // of the job on 16,384 GPUs

// Handbook §10: C = 60 s, M = 54 d / 419.
TEST(Intervals, OfYoungAndDalyAreThoseOfTheHandbook) {
  EXPECT_NEAR(young_interval(60.0_s, kLlamaMtbf).value(), 1155.9, 0.05);
  EXPECT_NEAR(daly_interval(60.0_s, kLlamaMtbf).value(), 1116.3, 0.05);
}

// Daly 2006, eq. 37: for C ≥ 2M, one checkpoint per mean time between failures.
TEST(Intervals, OfDalyIsTheMtbfForACheckpointThatTakesTwiceAsLong) {
  EXPECT_EQ(daly_interval(200.0_s, 100.0_s), 100.0_s);
  EXPECT_LT(daly_interval(199.0_s, 100.0_s), 100.0_s);
}

// The interval with the least wall time, found by trying, is Daly's to 1 % while C is small against
// M.
TEST(WallTime, IsLeastAtDalysInterval) {
  for (const double checkpoint : {1.0, 10.0, 60.0, 300.0}) {
    const auto wall = [&](double interval) {
      return kDay / goodput({.interval = Seconds(interval),
                             .checkpoint = Seconds(checkpoint),
                             .restart = 600.0_s,
                             .mtbf = kLlamaMtbf});
    };
    double best = 1;
    for (double interval = 1; interval < 20000; interval *= 1.001) {
      if (wall(interval) < wall(best)) best = interval;
    }
    EXPECT_NEAR(daly_interval(Seconds(checkpoint), kLlamaMtbf).value() / best, 1, 0.01);
  }
}

// Without failures only the checkpoints cost: τ / (τ + C).
TEST(Goodput, IsTheShareBetweenCheckpointsWhenNothingFails) {
  const FailureCycle cycle{
      .interval = 900.0_s, .checkpoint = 100.0_s, .restart = 600.0_s, .mtbf = Seconds(1e15)};
  EXPECT_NEAR(goodput(cycle), 0.9, 1e-9);
}

// By hand for M = 1000, τ + C = 1000, R = 0: an interval that succeeds costs M(e − 1) on average.
TEST(Goodput, CountsTheAttemptsThatAFailureCuts) {
  const FailureCycle cycle{
      .interval = 900.0_s, .checkpoint = 100.0_s, .restart = 0.0_s, .mtbf = 1000.0_s};
  EXPECT_NEAR(goodput(cycle), 0.9 / (std::exp(1.0) - 1), 1e-12);
}

TEST(JobMtbf, IsLlama3sOnItsDevicesByDefault) {
  const Cluster cluster = example_cluster(example_h100(), 2048);
  EXPECT_NEAR(job_mtbf({}, cluster, 16384) / kLlamaMtbf, 1, 1e-12);
  EXPECT_NEAR(job_mtbf({}, cluster, 8192) / kLlamaMtbf, 2, 1e-12);
}

// 64 devices with 640 s each fail 0.1 times per second; so do 4 racks with 40 s and 1 leaf with 10
// s.
TEST(JobMtbf, AddsTheRatesOfDevicesRacksAndLeaves) {
  Reliability reliability;
  reliability.device_mtbf = 640.0_s;
  reliability.racks = RackFailures{.nodes = 2, .mtbf = 40.0_s};
  reliability.leaves = LeafFailures{.mtbf = 10.0_s};
  const Cluster cluster = example_cluster(example_h100(), 8);
  EXPECT_NEAR(job_mtbf(reliability, cluster, 64).value(), 1 / 0.3, 1e-9);
}

// A false alarm is exactly two lost heartbeats in a row: 0.1²·0.9 of all heartbeats, one per
// second, from 8 nodes.
TEST(JobMtbf, CountsFalseAlarms) {
  Reliability reliability;
  reliability.device_mtbf = Seconds(1e30);
  reliability.heartbeat = {.interval = 1.0_s, .misses = 2, .loss = 0.1};
  const Cluster cluster = example_cluster(example_h100(), 8);
  EXPECT_NEAR(job_mtbf(reliability, cluster, 64).value(), 1 / (8 * 0.009), 1e-9);
}

TEST(Spares, AreOneInAHundredNodesUnlessSaid) {
  EXPECT_EQ(spares_of({}, 1), 1);
  EXPECT_EQ(spares_of({}, 2048), 20);
  Reliability none;
  none.spares = 0;
  EXPECT_EQ(spares_of(none, 2048), 0);
}

// Llama-3.1-8B (8,030,261,248 parameters) on 64 nodes: tp 8, D 64.
struct Example {
  PreparedJob job = llama_8b_on_h100(64, 64);
  Plan plan = legal_plan(job, {.tensor_parallel = 8});
  double bytes = 14 * 8030261248.0;  // 2 weights, 4 master, 4 + 4 moments
  Seconds step{1};                   // shorter than every interval
};

TEST(CheckpointCosts, AreOfFourteenBytesAParameter) {
  const Example example;
  EXPECT_DOUBLE_EQ(checkpoint_cost(example.job, example.plan, {}).bytes.value(), example.bytes);
}

// FSDP's state dict holds the fp32 weights and Adam's moments, but no 16-bit weights, which are
// casts.
TEST(CheckpointCosts, AreOfTwelveBytesWhereThereIsNoCopyOfTheWeights) {
  Example example;
  example.job.job.training.stack.keeps_weight_copy = false;
  EXPECT_DOUBLE_EQ(checkpoint_cost(example.job, example.plan, {}).bytes.value(), 12 * 8030261248.0);
}

// 2 bytes of weight, 4 of master weight, 4 of momentum. Embedding, head (128,256 × 4,096 each) and
// final norm also have AdamW's second moment (Liu et al. 2025, arXiv 2502.16982, §2.2).
TEST(CheckpointCosts, OfMuonHaveTwoMomentsAtTheEndsOfTheNetwork) {
  Example example;
  example.job.job.training.optimizer = *find_optimizer("muon");
  EXPECT_DOUBLE_EQ(checkpoint_cost(example.job, example.plan, {}).bytes.value(),
                   10 * 8030261248.0 + 4 * (2 * 128256.0 * 4096 + 4096));
}

TEST(CheckpointCosts, BlockForTheCopyToTheHostWhenAsynchronous) {
  const Example example;
  const double host = example.job.job.cluster.device.host_bandwidth.value();
  const Checkpointing asynchronous{.mode = CheckpointMode::asynchronous};
  const GoodputEstimate result =
      estimate_goodput(example.job, example.plan, example.step, {}, asynchronous);
  EXPECT_NEAR(result.blocking.value(), example.bytes / 512 / host, 1e-9);
  EXPECT_NEAR(result.background.value(), example.bytes / 64e9, 1e-9);  // 1 GB/s a node
}

TEST(CheckpointCosts, BlockForTheWritingWhenSynchronous) {
  const Example example;
  const Checkpointing synchronous{.mode = CheckpointMode::synchronous};
  const GoodputEstimate result =
      estimate_goodput(example.job, example.plan, example.step, {}, synchronous);
  EXPECT_NEAR(result.blocking.value(), example.bytes / 64e9, 1e-9);
  EXPECT_EQ(result.background, 0.0_s);
}

TEST(CheckpointCosts, AreThoseOfOneReplicaWhereCheckpointsAreNotSharded) {
  const Example example;
  const Checkpointing whole{.sharded = false};
  const double host = example.job.job.cluster.device.host_bandwidth.value();
  EXPECT_NEAR(checkpoint_cost(example.job, example.plan, whole).copy.value(),
              example.bytes / 8 / host, 1e-9);
  // If one node writes, its eight NICs of 25 GB/s at 0.85 are the limit, not the store.
  StorageTier fast;
  fast.write_bandwidth = BytesPerSecond(1e15);
  EXPECT_NEAR(tier_cost(example.job, example.plan, whole, fast).write.value(),
              example.bytes / (8 * 25e9 * 0.85), 1e-9);
}

TEST(CheckpointCosts, DoubleWhenOthersTakeHalfOfTheStore) {
  const Example example;
  StorageTier shared;
  shared.contention = 0.5;
  EXPECT_NEAR(tier_cost(example.job, example.plan, {}, shared).write.value(),
              2 * example.bytes / 64e9, 1e-9);
}

// Of ten checkpoints one is full and nine are a tenth of it: 1.9/10.
TEST(CheckpointCosts, AreReadAtTheBandwidthOfWritingUnlessAnotherIsSaid) {
  const Example example;
  const auto read = [&](StorageTier tier) {
    return tier_cost(example.job, example.plan, {}, tier).read;
  };
  const BytesPerSecond slow(5e8), fast(2e9);
  EXPECT_EQ(read({.write_bandwidth = slow}), Seconds(example.bytes / 5e8));
  EXPECT_EQ(read({.write_bandwidth = slow, .read_bandwidth = fast}), Seconds(example.bytes / 2e9));
}

TEST(CheckpointCosts, ShrinkWithIncrements) {
  const Example example;
  Checkpointing checkpointing{.mode = CheckpointMode::synchronous};
  checkpointing.incremental = Incremental{};
  EXPECT_NEAR(
      estimate_goodput(example.job, example.plan, example.step, {}, checkpointing).blocking.value(),
      0.19 * example.bytes / 64e9, 1e-9);
}

// A copy on one peer crosses the NICs once, and each part is then on two nodes.
TEST(CheckpointCosts, InMemoryAreThoseOfTheNics) {
  const Example example;
  const TierCost cost =
      tier_cost(example.job, example.plan, {}, {.kind = TierKind::memory, .peers = 1});
  EXPECT_NEAR(cost.write.value(), example.bytes / (64 * 8 * 25e9 * 0.85), 1e-9);
  EXPECT_EQ(cost.copies, 2);
  EXPECT_EQ(tier_cost(example.job, example.plan, {}, {}).copies, 0);
}

TEST(EstimatedGoodput, TakesDalysIntervalUnlessOneIsAsked) {
  const Example example;
  const Checkpointing synchronous{.mode = CheckpointMode::synchronous};
  const GoodputEstimate best =
      estimate_goodput(example.job, example.plan, example.step, {}, synchronous);
  EXPECT_EQ(best.interval, best.daly);
  Checkpointing asked = synchronous;
  asked.interval = 10 * best.daly;
  const GoodputEstimate worse =
      estimate_goodput(example.job, example.plan, example.step, {}, asked);
  EXPECT_EQ(worse.interval, 10 * best.daly);
  EXPECT_LT(worse.goodput, best.goodput);
}

TEST(EstimatedGoodput, NeverTakesCheckpointsFasterThanTheyAreWritten) {
  const Example example;
  Checkpointing slow{.interval = 1.0_s};
  slow.tiers = {{.write_bandwidth = BytesPerSecond(1e9)}};
  EXPECT_EQ(estimate_goodput(example.job, example.plan, example.step, {}, slow).interval,
            Seconds(example.bytes / 1e9));
}

// With false alarms alone nothing is ever dead. Where devices fail as often as alarms are false,
// half of the interruptions wait for a missing heartbeat, which takes 1.5 intervals on average.
TEST(EstimatedGoodput, DetectsOnlyWhatFailed) {
  const Example example;
  Reliability reliability;
  reliability.heartbeat = {.interval = 1.0_s, .misses = 2, .loss = 0.1};
  reliability.device_mtbf = Seconds(1e30);
  const auto detect = [&] {
    return estimate_goodput(example.job, example.plan, example.step, reliability, {})
        .restart.detect.value();
  };
  EXPECT_NEAR(detect(), 0, 1e-9);
  const double devices = example.plan.devices();
  const int nodes = nodes_of(example.job.job.cluster, example.plan.devices());
  reliability.device_mtbf = Seconds(devices / (nodes * 0.009));
  EXPECT_NEAR(detect(), 0.5 * 1.5, 1e-9);
}

// A checkpoint is taken after a step. If it is asked for more often, the goodput is that of one per
// step.
TEST(EstimatedGoodput, TakesNoMoreCheckpointsThanSteps) {
  Example example;
  example.step = 7.0_s;
  const Checkpointing often{.mode = CheckpointMode::synchronous, .interval = 1.0_s};
  const auto result = estimate_goodput(example.job, example.plan, example.step, {}, often);
  EXPECT_EQ(result.interval, example.step);
  EXPECT_EQ(result.goodput, goodput({.interval = 7.0_s,
                                     .checkpoint = Seconds(example.bytes / 64e9),
                                     .restart = result.restart.total(),
                                     .mtbf = result.mtbf}));
  example.step = 100 * result.daly;
  EXPECT_EQ(estimate_goodput(example.job, example.plan, example.step, {},
                             {.mode = CheckpointMode::synchronous})
                .interval,
            example.step);
}

}  // namespace
}  // namespace trainyard
