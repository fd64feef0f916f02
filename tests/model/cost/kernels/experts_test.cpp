#include "model/cost/kernels/experts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

TEST(GroupedGemmTime, ReadsEveryExpertsWeightsWhenTokensAreFew) {
  // 64 experts of 7168×2048 in 16 bits, one row each: 1.88 GB of weights at 1 TB/s.
  const Seconds time = grouped_gemm_time(ideal_device(), Dtype::bf16, {1, 2048, 7168, 64});
  EXPECT_GE(time.value(), 2.0 * 64 * 7168 * 2048 / 1e12);
}

// A V100 computes in fp16 and fp32. Eight experts with 4,096 rows each take 2mnk FLOP at the
// measured 100 TFLOP/s in 16 bits, and at 12.5 in fp32, whose dense rate is an eighth (handbook
// §5), combined with the time of the weights at 1 TB/s.
TEST(GroupedGemmTime, OfADeviceWithoutBf16IsMeasuredInFp16) {
  Device device = ideal_device();
  device.rates.gemm[static_cast<std::size_t>(Dtype::bf16)] = {};
  device.rates.gemm[static_cast<std::size_t>(Dtype::fp32)].per_multiprocessor =
      FlopsPerSecond(0.125e12);
  const double flop = 8 * 2.0 * 4096 * 4096 * 14336;
  const double weights = 8.0 * 4096 * 14336 / 1e12;
  const GemmShape shape{4096, 4096, 14336, 8};
  EXPECT_NEAR(grouped_gemm_time(device, Dtype::fp16, shape).value(),
              std::hypot(flop / 100e12, 2 * weights), 1e-9);
  EXPECT_NEAR(grouped_gemm_time(device, Dtype::fp32, shape).value(),
              std::hypot(flop / 12.5e12, 4 * weights), 1e-9);
}

// Experts of 4096 × 14336, gated: 16,384 tokens go to 2 of 8 experts on two ranks.
ExpertBlock mixtral(double exponent) {
  return {.routing = {16384, 2, 8, exponent}, .hidden = 4096, .ffn = 14336, .ranks = 2};
}

TEST(ExpertBlockTime, IsItsMultiplicationsOnAnIdealDevice) {
  // A rank computes 16,384 rows of 3·2·4096·14336 FLOP each at 100 TFLOP/s and reads the weights of
  // four experts, 3·2 bytes · 4096 · 14336 each, at 1 TB/s.
  const double compute = 16384 * 6.0 * 4096 * 14336 / 100e12;
  const double weights = 4 * 6.0 * 4096 * 14336 / 1e12;
  EXPECT_NEAR(expert_block_time(ideal_device(), mixtral(0)).value(), std::hypot(compute, weights),
              1e-9);
}

TEST(ExpertBlockTime, IsTheBusiestRanks) {
  const double even = expert_block_time(ideal_device(), mixtral(0)).value();
  const double uneven = expert_block_time(ideal_device(), mixtral(1.2)).value();
  const double busiest = busiest_over_mean(mixtral(1.2).routing, 2);
  EXPECT_GT(uneven / even, 1.05);
  EXPECT_LT(uneven / even, busiest + 1e-9);
}

TEST(ExpertBlockTime, ReadsNoWeightsOfIdleExperts) {
  ExpertBlock block{.routing = {128, 1, 128, 1.2}, .hidden = 5120, .ffn = 8192, .ranks = 1};
  const double skewed = expert_block_time(ideal_device(), block).value();
  block.routing.exponent = 0;
  const double even = expert_block_time(ideal_device(), block).value();
  EXPECT_NEAR(skewed / even, active_share({128, 1, 128, 1.2}), 0.02);
}

TEST(ExpertBlockTime, OfALoneExpertHasItsOwnBandwidth) {
  Device device = ideal_device();
  device.rates.experts.lone_share = 0.25;
  ExpertBlock block{.routing = {64, 1, 64, 0}, .hidden = 5120, .ffn = 8192, .ranks = 64};
  const double lone = expert_block_time(device, block) / expert_block_time(ideal_device(), block);
  EXPECT_NEAR(lone, 4, 0.05);  // one row: all weights
  block.ranks = 32;
  EXPECT_EQ(expert_block_time(device, block), expert_block_time(ideal_device(), block));
}

}  // namespace
}  // namespace trainyard
