#include "model/cost/compute.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

using namespace literals;

struct GemmCheck {
  double m, n, k, seconds;
};

void expect_gemm_times(const Device& device, Dtype dtype, const std::vector<GemmCheck>& checks) {
  for (const GemmCheck& c : checks) {
    EXPECT_NEAR(gemm_time(device, dtype, {c.m, c.n, c.k}).value() / c.seconds, 1, 1e-6)
        << c.m << "x" << c.n << "x" << c.k;
  }
}

// Expected values: the independent Python implementation with which the parameters were fitted.
TEST(GemmTime, AgreesWithTheFittingCodeOnH100Bf16) {
  expect_gemm_times(example_h100(), Dtype::bf16,
                    {{8192, 8192, 8192, 0.001430455},
                     {4096, 14336, 4096, 0.0006225939},
                     {2048, 51200, 6144, 0.001694039},
                     {512, 4096, 4096, 2.599053e-05},
                     {64, 8192, 8192, 5.194833e-05},
                     {128, 256, 7168, 8.007195e-06},
                     {100, 333, 1000, 4.105004e-06}});
}

TEST(GemmTime, AgreesWithTheFittingCodeOnH100Fp8AndA100) {
  expect_gemm_times(example_h100(), Dtype::fp8,
                    {{8192, 28672, 8192, 0.002703903}, {4096, 2048, 512, 1.215287e-05}});
  expect_gemm_times(example_a100(), Dtype::bf16,
                    {{8192, 8192, 8192, 0.004094312}, {65536, 1024, 4096, 0.002064076}});
}

// 2·m·n·k FLOP at 100 TFLOP/s: the tiles fill whole waves, so nothing is rounded up.
TEST(GemmTime, IsFlopOverRateOnAnIdealDevice) {
  const GemmShape shape{12800, 25600, 4096};  // 100 × 100 tiles of 128×256 on 100 multiprocessors
  const double flop = 2.0 * 12800 * 25600 * 4096;
  EXPECT_NEAR(gemm_time(ideal_device(), Dtype::bf16, shape).value(), flop / 100e12,
              1e-3 * flop / 100e12);
}

TEST(GemmTime, IsBoundedByMemoryForOneRow) {
  // 1×8192×8192 in 16 bits reads 128 MiB of weights: at least 0.134 ms at 1 TB/s.
  const Seconds time = gemm_time(ideal_device(), Dtype::bf16, {1, 8192, 8192});
  EXPECT_GE(time, Bytes(2.0 * 8192 * 8192) / 1000.0_GBps);
}

// Measured: h100_sxm_gemm.csv, bfloat16 4353×65536×16384 takes 13,445.221 µs.
TEST(GemmTime, IsNearTheMeasurementOfALargeGemm) {
  const double time = gemm_time(example_h100(), Dtype::bf16, {4353, 65536, 16384}).value();
  EXPECT_NEAR(time / 13445.221e-6, 1, 0.1);
}

TEST(DeviceSupports, Fp8OnH100AndNotOnA100) {
  EXPECT_TRUE(example_h100().supports(Dtype::fp8));
  EXPECT_FALSE(example_a100().supports(Dtype::fp8));
}

AttentionShape causal(double batch, double sequence, double heads, double kv_heads, double dim) {
  return {batch, heads, kv_heads, sequence, sequence, dim, dim, false};
}

// Expected values: the fitting code with minimal traffic (no KV cache is written in training).
TEST(AttentionTime, AgreesWithTheFittingCode) {
  const Device h100 = example_h100();
  EXPECT_NEAR(attention_time(h100, causal(1, 4096, 32, 8, 128), 1).value(), 0.0003142334, 1e-9);
  EXPECT_NEAR(attention_time(h100, causal(1, 8192, 4, 1, 128), 1).value(), 0.0001999491, 1e-9);
  EXPECT_NEAR(attention_time(h100, causal(1, 131072, 4, 1, 128), 1).value(), 0.03120677, 1e-7);
  EXPECT_NEAR(attention_time(h100, causal(1, 4096, 24, 24, 96), 1).value(), 0.0002190517, 1e-9);
  EXPECT_NEAR(attention_time(example_a100(), causal(2, 4096, 32, 8, 128), 1).value(), 0.002019761,
              1e-8);
}

TEST(AttentionTime, OfContextParallelRanksAddsUpToTheWhole) {
  // Ideal device: s/c queries against s keys, causal, is 1/c of the tiles.
  const Device device = ideal_device();
  const Seconds whole = attention_time(device, causal(1, 65536, 32, 32, 128), 1);
  AttentionShape quarter = causal(1, 65536, 32, 32, 128);
  quarter.queries = 16384;
  EXPECT_NEAR(attention_time(device, quarter, 1) / whole, 0.25, 0.01);
}

TEST(AttentionTime, OfASlidingWindowGrowsWithTheWindowNotTheSequence) {
  AttentionShape window = causal(1, 65536, 32, 32, 128);
  window.keys = 4096;
  window.sliding = true;
  // 512 query tiles; full: 512·513/2 key tiles; window: at most 33 each.
  const Seconds full = attention_time(ideal_device(), causal(1, 65536, 32, 32, 128), 1);
  EXPECT_LT(attention_time(ideal_device(), window, 1) / full, 33.0 * 512 / (512 * 513 / 2) + 0.01);
}

TEST(MemoryBoundTime, IsBytesOverShareOfBandwidthPlusLaunch) {
  const Device h100 = example_h100();  // 0.87 of 3,350 GB/s, 3 µs
  EXPECT_NEAR(memory_bound_time(h100, 1.0_GB).value(), 1e9 / (0.87 * 3350e9) + 3e-6, 1e-12);
  EXPECT_EQ(memory_bound_time(h100, Bytes(0)), Seconds(0));
}

TEST(GroupedGemmTime, ReadsEveryExpertsWeightsWhenTokensAreFew) {
  // 64 experts of 7168×2048 in 16 bits, one row each: 1.88 GB of weights at 1 TB/s.
  const Seconds time = grouped_gemm_time(ideal_device(), Dtype::bf16, {1, 2048, 7168, 64});
  EXPECT_GE(time.value(), 2.0 * 64 * 7168 * 2048 / 1e12);
}

}  // namespace
}  // namespace trainyard
