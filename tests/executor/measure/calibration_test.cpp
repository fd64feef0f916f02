// Fits of samples made by hand: a device's link and memory, a stack, the links of a node. Also the
// statistics of repeated times.
#include "executor/measure/calibration.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <cmath>

#include "executor/cpu/measure.h"
#include "executor/cpu/neighbours.h"

namespace trainyard {
namespace {

// Samples of a device with 1 TFLOP/s, a microsecond per call, and copies at 1 TB/s.
HostSamples plain_samples() {
  HostSamples samples;
  samples.copy = BytesPerSecond(1e12);
  samples.attention_backward = 2;
  for (const double m : {64.0, 256.0, 512.0, 1024.0}) {
    for (const double n : {64.0, 256.0, 512.0, 1024.0}) {
      for (const double k : {64.0, 256.0, 512.0, 1024.0}) {
        samples.gemm.push_back({Dtype::fp32, {m, n, k}, Seconds(1e-6 + 2 * m * n * k * 1e-12)});
      }
    }
  }
  for (int i = 1; i <= 24; ++i) {
    const double tokens = 64.0 * i;
    const AttentionShape shape{.batch = 1,
                               .heads = 4,
                               .kv_heads = 4,
                               .queries = tokens,
                               .keys = tokens,
                               .query_head_dim = 64,
                               .value_head_dim = 64};
    samples.attention.push_back(
        {Dtype::fp32, shape, Seconds(1e-6 + 2 * 4 * tokens * tokens * 64 * 1e-12)});
  }
  for (const double bytes : {1e4, 1e6, 1e8}) {
    samples.traffic.push_back({Bytes(bytes), Seconds(1e-6 + bytes * 1e-12)});
  }
  return samples;
}

double link_of(const DeviceFrame& frame) {
  const auto device = fitted_device(plain_samples(), {}, frame);
  EXPECT_TRUE(device) << device.error().message;
  return device ? device->link_bandwidth.value() : 0;
}

TEST(CalibratedDevice, HasTheLinkThatWasMeasuredWithoutCollectives) {
  EXPECT_EQ(link_of({.memory = Bytes(1e9), .host = BytesPerSecond(25e9)}), 25e9);
}

TEST(CalibratedDevice, HasACopyAsItsLinkWhereNothingIsKnownOfIt) {
  EXPECT_EQ(link_of({.memory = Bytes(1e9)}), 1e12);
}

// A copy at 1 TB/s reads half of these bytes and writes half.
TEST(CalibratedDevice, ReachesTheHostsMemoryByItsLinkOrByACopy) {
  const auto apart = fitted_device(plain_samples(), {}, {.host = BytesPerSecond(25e9)});
  const auto inside = fitted_device(plain_samples(), {}, {});
  ASSERT_TRUE(apart && inside);
  EXPECT_EQ(apart->host_bandwidth.value(), 25e9);
  EXPECT_EQ(inside->host_bandwidth.value(), 0.5e12);
}

// The rates measured in bursts stay; the share that training attains over seconds is a separate
// figure.
TEST(CalibratedDevice, KeepsThePaceOfSecondsApartFromThatOfBursts) {
  HostSamples slower = plain_samples();
  slower.sustained_clock = 0.9;
  const auto device = fitted_device(slower, {}, {}), burst = fitted_device(plain_samples(), {}, {});
  ASSERT_TRUE(device && burst);
  EXPECT_EQ(device->rates.sustained_clock, 0.9);
  EXPECT_EQ(burst->rates.sustained_clock, 1);
  EXPECT_EQ(device->rates.of(Dtype::fp32).per_multiprocessor.value(),
            burst->rates.of(Dtype::fp32).per_multiprocessor.value());
}

// Compute capabilities as NVIDIA lists them: V100 7.0, A100 8.0, A40 8.6, L40S 8.9, H100 9.0,
// B200 10.0, RTX 5090 12.0.
TEST(CalibratedDevice, HasTheGenerationOfItsComputeCapability) {
  using enum DeviceGeneration;
  EXPECT_EQ(generation_of(7, 0), std::nullopt);
  EXPECT_EQ(generation_of(8, 0), ampere);
  EXPECT_EQ(generation_of(8, 6), ampere);
  EXPECT_EQ(generation_of(8, 9), std::nullopt);
  EXPECT_EQ(generation_of(9, 0), hopper);
  EXPECT_EQ(generation_of(10, 0), blackwell);
  EXPECT_EQ(generation_of(12, 0), std::nullopt);
  const auto gpu = fitted_device(plain_samples(), {}, {.generation = hopper});
  const auto host = fitted_device(plain_samples(), {}, {});
  ASSERT_TRUE(gpu && host);
  EXPECT_EQ(gpu->generation, hopper);
  EXPECT_EQ(host->generation, std::nullopt);
}

TEST(CalibratedDevice, HasTheSlowdownThatWasMeasuredOfIt) {
  const auto measured = fitted_device(plain_samples(), {}, {.overlap_slowdown = 0.25});
  const auto alone = fitted_device(plain_samples(), {}, {});
  ASSERT_TRUE(measured && alone);
  EXPECT_EQ(measured->overlap_slowdown, 0.25);
  EXPECT_EQ(alone->overlap_slowdown, std::nullopt);
}

// In a step, memory runs at 0.5 TB/s, but norms and similar kernels at 0.25 TB/s, so they count
// twice. Logits take 0.1 ns forward: 1e-10 · 5e11 = 50 bytes; backward twice as many.
HostSamples samples_of_steps() {
  HostSamples samples = plain_samples();
  StepSamples& steps = samples.steps;
  steps.update = {Bytes(5e9), Seconds(1e-2)};
  steps.memory_bound = {Bytes(1e9), Seconds(4e-3)};
  steps.logits = 1e6;
  steps.cross_entropy = Seconds(1e-4);
  steps.cross_entropy_gradient = Seconds(2e-4);
  steps.attention_forward = Seconds(1e-3);
  steps.attention_gradient = Seconds(3e-3);
  return samples;
}

TEST(CalibratedStack, GivesBackTheStepsItWasFittedTo) {
  const HostSamples samples = samples_of_steps();
  const auto device = fitted_device(samples, {}, {.memory = Bytes(1e9)});
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_NEAR(device->rates.memory, 0.5, 1e-9);
  const Stack stack = fitted_stack(samples, *device);
  EXPECT_NEAR(stack.memory_traffic, 2, 1e-9);
  EXPECT_NEAR(stack.cross_entropy_forward_bytes, 50, 1e-6);
  EXPECT_NEAR(stack.cross_entropy_backward_bytes, 100, 1e-6);
  EXPECT_NEAR(stack.attention_backward, 3, 1e-9);
  EXPECT_FALSE(stack.overlap.data_parallel);
}

// If a tenth of a step lies between its operations, each operation is a tenth longer.
TEST(CalibratedStack, SharesOutTheTimeBetweenOperations) {
  HostSamples samples = samples_of_steps();
  samples.steps.between = 0.1;
  const auto device = fitted_device(samples, {}, {.memory = Bytes(1e9)});
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_NEAR(device->rates.memory, 0.5 / 1.1, 1e-9);
  EXPECT_NEAR(fitted_stack(samples, *device).memory_traffic, 2, 1e-9);
}

TEST(CalibratedStack, KnowsOnlyAttentionWhereNoStepsWereMeasured) {
  const HostSamples samples = plain_samples();
  const auto device = fitted_device(samples, {}, {.memory = Bytes(1e9)});
  ASSERT_TRUE(device) << device.error().message;
  const Stack stack = fitted_stack(samples, *device);
  EXPECT_EQ(stack.attention_backward, 2);
  EXPECT_EQ(stack.memory_traffic, 1);
}

// All-gathers between two hosts of one rank: α + S/2B (handbook §6, ring with n = 2).
TEST(CalibratedFabric, HasTheStepAndTheRateThatItsCollectivesWereMadeOf) {
  constexpr double kStep = 50e-6, kRate = 1e9;
  std::vector<CollectiveSample> samples;
  for (double bytes = 1 << 16; bytes <= 1 << 23; bytes *= 2) {
    samples.push_back(
        {CollectiveOperation::all_gather, 2, Bytes(bytes), Seconds(kStep + bytes / 2 / kRate)});
  }
  Cluster host;
  host.devices_per_node = host.nvlink_domain = host.nodes = 1;
  const auto fabric = fitted_fabric(samples, host);
  ASSERT_TRUE(fabric);
  EXPECT_NEAR(fabric->latency.value(), kStep, 0.02 * kStep);
  EXPECT_NEAR(fabric->bandwidth.value() * fabric->efficiency, kRate, 0.02 * kRate);
  EXPECT_LE(fabric->efficiency, 1);
}

TEST(CalibratedFabric, IsNotMadeOfThreeCollectives) {
  Cluster host;
  host.devices_per_node = host.nvlink_domain = host.nodes = 1;
  const std::vector<CollectiveSample> three(
      3, {CollectiveOperation::all_gather, 2, Bytes(1e6), Seconds(1e-3)});
  EXPECT_FALSE(fitted_fabric(three, host));
}

// With 2 µs and 1 GB/s, 1 kB takes 3 µs and 1 MB takes 1002 µs. The latency is the time of the
// smallest message.
TEST(CalibratedLinks, HaveTheLatencyOfTheLeastMessageAndTheRateOfTheRest) {
  const std::vector<CollectiveSample> sends = {
      {CollectiveOperation::send, 2, Bytes(1e3), Seconds(3e-6)},
      {CollectiveOperation::send, 2, Bytes(1e6), Seconds(1002e-6)},
      {CollectiveOperation::all_reduce, 2, Bytes(1e9), Seconds(1)}};
  const IntraNode links = fitted_links(sends, {});
  EXPECT_NEAR(links.latency.value(), 3e-6, 1e-12);
  EXPECT_NEAR(links.bandwidth.value(), 1e9, 1);
}

TEST(CalibratedLinks, AreTheDevicesWhereNoMessageWasMeasured) {
  Device device;
  device.link_bandwidth = BytesPerSecond(7e9);
  EXPECT_EQ(fitted_links({}, device).bandwidth.value(), 7e9);
}

// ---- Repeated times -----------------------------------------------------------------------

// The median is 10, and the distances from it are 1, 1, 0, 1, 1, 0, 990, with median 1. So what is
// more than 3 · 1.4826 away is an outlier.
TEST(RepeatedTimes, LeaveOutWhatIsFarFromTheirMedian) {
  const Timing timing = timing_of({9, 11, 10, 9, 11, 10, 1000});
  EXPECT_EQ(timing.outliers, 1);
  EXPECT_EQ(timing.runs, 7);
  EXPECT_EQ(timing.median.value(), 10);
}

TEST(RepeatedTimes, HaveTheMeanOfTheTwoMiddleOnesAsTheirMedian) {
  EXPECT_EQ(timing_of({1, 3}).median, Seconds(2));
}

// The standard error of a median of n normal values is σ·√(π/2n); σ is 1.4826 median deviations.
TEST(RepeatedTimes, SayHowCertainTheirMedianIs) {
  const Timing timing = timing_of({9, 11, 10, 9, 11});
  const double error = 1.4826 * std::sqrt(3.14159265358979 / 2 / 5);
  EXPECT_NEAR(timing.deviation.value(), error, 1e-12);
  EXPECT_NEAR(timing.uncertainty(), 1.96 * error / 10, 1e-12);
}

TEST(RepeatedTimes, EndWhenTheyAreCertainAndWhenTheBudgetIsSpent) {
  EXPECT_EQ(repeated_timing([] { return Seconds(1); }, Seconds(1e9)).runs, 5);
  int i = 0;
  const auto unsteady = [&i] { return Seconds(1 << (++i % 5)); };
  EXPECT_EQ(repeated_timing(unsteady, Seconds(0)).runs, 2);
  EXPECT_EQ(repeated_timing(unsteady, Seconds(1e9)).runs, 200);
}

// Without any time, only what the fits need is measured: 60 rows of a dtype (fit_gemm); 20 for each
// of three head dimensions (fit_attention), forward and backward; a copy and 6·2 sums.
TEST(HostMeasurement, WithoutTimeIsWhatTheFitsNeed) {
  double part = 0;
  const HostSamples samples =
      measure_host({Seconds(0), [&part](double done) { part = done; }, [] { return false; }});
  EXPECT_EQ(samples.gemm.size(), 60U);
  EXPECT_EQ(samples.attention.size(), 60U);
  EXPECT_EQ(samples.points.size(), 1U + 60 + 120 + 12);
  EXPECT_EQ(part, 1);
  const auto device = fitted_device(samples, {}, {.memory = Bytes(1e9)});
  EXPECT_TRUE(device) << device.error().message;
}

// ---- Beside others ------------------------------------------------------------------------

TEST(NeighbourRanks, AreGoneWhenTheirTimeIsOver) {
  {
    const Neighbours two(2);
    EXPECT_EQ(two.count(), 2);
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace trainyard
