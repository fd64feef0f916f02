#include "model/cost/kernels/gemm.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

using namespace literals;

Seconds gemm_time(const Device& device, Dtype dtype, const GemmShape& shape) {
  return gemm_pass_times(device, dtype, shape).front();
}

struct GemmCheck {
  double m, n, k, seconds;
};

void expect_gemm_times(const Device& device, Dtype dtype, const std::vector<GemmCheck>& checks) {
  for (const GemmCheck& c : checks) {
    EXPECT_NEAR(gemm_time(device, dtype, {c.m, c.n, c.k}).value() / c.seconds, 1, 1e-6)
        << c.m << "x" << c.n << "x" << c.k;
  }
}

// The expected values come from the independent Python implementation that fitted the parameters.
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

TEST(GemmPassTimes, AreThoseOfTheThreeShapes) {
  Device device = example_h100();
  ResidualGrid& residual = device.rates.gemm[static_cast<std::size_t>(Dtype::bf16)].residual;
  residual = {{{10, 14}, {10, 14}, {10, 14}}, {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}};
  const auto time = [&](double m, double n, double k) {
    return gemm_time(device, Dtype::bf16, {m, n, k});
  };
  const auto passes = gemm_pass_times(device, Dtype::bf16, {8192, 2304, 4096});
  EXPECT_EQ(passes[0], time(8192, 2304, 4096));
  EXPECT_EQ(passes[1], time(8192, 4096, 2304));
  EXPECT_EQ(passes[2], time(4096, 2304, 8192));
  EXPECT_NE(passes[0], passes[1]);
}

TEST(DeviceSupports, Fp8OnH100AndNotOnA100) {
  EXPECT_TRUE(example_h100().supports(Dtype::fp8));
  EXPECT_FALSE(example_a100().supports(Dtype::fp8));
}

}  // namespace
}  // namespace trainyard
