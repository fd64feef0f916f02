// Attention in precisions and on devices for which no kernel was measured. The expected time is
// FLOP over the device's rate in that precision, plus bytes at 1 TB/s.
#include "model/cost/compute.h"

#include <gtest/gtest.h>

#include "tests/model/cost/example_devices.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

GemmRates& gemm_of(Device& device, Dtype dtype) {
  return device.rates.gemm[static_cast<std::size_t>(dtype)];
}
FlopsPerSecond& peak_of(Device& device, Dtype dtype) {
  return device.peak[static_cast<std::size_t>(dtype)];
}

// A device with 100 TFLOP/s in bf16, a sixteenth of it in fp32 and no fp16, as a Gaudi 3 or a TPU
// with an fp32 unit.
Device device_without_fp16() {
  Device device = ideal_device();
  gemm_of(device, Dtype::fp16) = {};
  peak_of(device, Dtype::fp16) = FlopsPerSecond(0);
  gemm_of(device, Dtype::fp32).per_multiprocessor = FlopsPerSecond(1e12 / 16);
  peak_of(device, Dtype::fp32) = FlopsPerSecond(100e12 / 16);
  return device;
}

constexpr double kScores = 32.0 * 4096 * 4096;

// The attention core of one sequence of 4,096 tokens with 32 heads of `head_dim`.
Operator core(double head_dim) {
  Operator op;
  op.kind = OperatorKind::attention_core;
  op.cls = OperatorClass::attention;
  op.attention = {1, 32, 32, 4096, 4096, head_dim, head_dim, false};
  op.forward = Flops(4 * kScores * head_dim);
  return op;
}

Seconds forward_time(const char* precision, double head_dim, bool flash) {
  Training training = modern();
  training.precision = *find_precision_recipe(precision);
  training.stack = {};
  training.stack.flash_attention = flash;
  return operator_time(device_without_fp16(), training, core(head_dim), nullptr).forward;
}

TEST(UnfusedAttention, RunsAtThePeakOfItsPrecision) {
  const double flop = 4 * kScores * 128;
  EXPECT_NEAR(forward_time("bf16", 128, false).value(), flop / 100e12, 1e-9);
  EXPECT_NEAR(forward_time("fp32", 128, false).value(), flop / (100e12 / 16), 1e-9);
}

// Only tensor cores need aligned rows.
TEST(UnfusedAttention, OfUnalignedHeadsIsAQuarterAsFastInSixteenBitsOnly) {
  const double flop = 4 * kScores * 100.5;
  EXPECT_NEAR(forward_time("bf16", 100.5, false).value(), 4 * flop / 100e12, 1e-9);
  EXPECT_NEAR(forward_time("fp32", 100.5, false).value(), flop / (100e12 / 16), 1e-9);
}

// Causal: 32·33/2 of the 32² tiles of 128² scores. Q, K, V and O move once, at 2 and at 4 bytes per
// element.
TEST(FlashAttention, OfFp32RunsAtTheRateOfFp32) {
  const double flop = 4 * kScores * 128 * (32.0 * 33 / 2) / (32 * 32);
  const double traffic = 4 * 4096.0 * 32 * 128 / 1e12;
  EXPECT_NEAR(forward_time("bf16", 128, true).value(), flop / 100e12 + 2 * traffic, 1e-9);
  EXPECT_NEAR(forward_time("fp32", 128, true).value(), flop / (100e12 / 16) + 4 * traffic, 1e-9);
}

// 16,384 logits at 42 bytes each on 1 TB/s. The bytes are counted exactly, so memory_traffic, the
// factor over the minimum of fused kernels, does not apply.
TEST(CrossEntropy, IsNotMultipliedByTheTrafficOfFusedKernels) {
  Operator op;
  op.kind = OperatorKind::cross_entropy;
  op.cls = OperatorClass::memory_bound;
  op.forward_traffic = Bytes(16'384 * 42);
  Training training = modern();
  training.stack.memory_traffic = 2;
  const auto time = [&] { return operator_time(ideal_device(), training, op).forward.value(); };
  EXPECT_NEAR(time(), 688'128 / 1e12, 1e-12);
  op.kind = OperatorKind::final_norm;
  EXPECT_NEAR(time(), 2 * 688'128 / 1e12, 1e-12);
}

}  // namespace
}  // namespace trainyard
