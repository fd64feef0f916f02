#include "model/calibration/fit_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/cost/kernels/attention.h"
#include "tests/model/calibration/no_progress.h"
#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

using namespace literals;

Device known_attention() {
  Device device = example_h100();
  AttentionRates rates{128, 4.4_TFLOPps, 11.0_us, 0.5, 0.6_us, 2.0};
  rates.query_traffic = 2.6;
  rates.kv_traffic = 1.9;
  device.rates.attention = {rates};
  return device;
}

// Prefill attention over a grid of sequence lengths, batches and heads: the times that `device`
// predicts, multiplied by `scale`.
std::vector<AttentionSample> samples_of(const Device& device, double scale = 1) {
  std::vector<AttentionSample> samples;
  for (const double sequence : {64, 256, 512, 1024, 2048, 3072, 4096, 8192, 16384}) {
    for (const double batch : {1, 2, 4, 8, 16, 32}) {
      for (const double heads : {4, 8, 16, 32, 64}) {
        const AttentionShape shape{batch, heads, heads / 4, sequence, sequence, 128, 128, false};
        const Seconds time = attention_prefill_time(device, shape) * scale;
        samples.push_back({Dtype::bf16, shape, time});
      }
    }
  }
  return samples;
}

Device without_attention() {
  Device device = example_h100();
  device.rates.attention.clear();
  return device;
}

TEST(AttentionFit, RecoversTheRateOfSyntheticKernels) {
  Device device = without_attention();
  ASSERT_TRUE(fit_attention(device, samples_of(known_attention()), kNoProgress).has_value());
  ASSERT_EQ(device.rates.attention.size(), 1U);
  const AttentionRates& fitted = device.rates.attention.front();
  EXPECT_NEAR(fitted.per_multiprocessor / 4.4_TFLOPps, 1, 0.02);
  EXPECT_NEAR(fitted.overhead / 11.0_us, 1, 0.1);
  for (const AttentionSample& sample : samples_of(known_attention())) {
    EXPECT_NEAR(attention_prefill_time(device, sample.shape) / sample.time, 1, 0.02);
  }
}

// A head dimension or window that the table has no rows of keeps its rates.
TEST(AttentionFit, KeepsTheHeadDimensionsAndWindowsItHasNoRowsOf) {
  Device device = example_h100();
  AttentionRates rates = known_attention().rates.attention.front();
  rates.head_dim = 64;
  device.rates.attention = {rates};
  rates.head_dim = 128;
  device.rates.attention.push_back(rates);
  rates.sliding = true;
  device.rates.attention.push_back(rates);
  const Device before = device;
  ASSERT_TRUE(fit_attention(device, samples_of(known_attention(), 1.3), kNoProgress).has_value());
  ASSERT_EQ(device.rates.attention.size(), 3U);
  for (const std::size_t kept : {0, 2}) {
    EXPECT_EQ(device.rates.attention[kept].head_dim, before.rates.attention[kept].head_dim);
    EXPECT_EQ(device.rates.attention[kept].sliding, before.rates.attention[kept].sliding);
    EXPECT_EQ(device.rates.attention[kept].per_multiprocessor,
              before.rates.attention[kept].per_multiprocessor);
  }
  EXPECT_EQ(device.rates.attention[1].head_dim, 128);
  EXPECT_FALSE(device.rates.attention[1].sliding);
  EXPECT_LT(device.rates.attention[1].per_multiprocessor,
            before.rates.attention[1].per_multiprocessor);
}

TEST(AttentionFit, FindsTheSameParametersEveryTime) {
  Device once = without_attention();
  Device again = without_attention();
  ASSERT_TRUE(fit_attention(once, samples_of(known_attention(), 1.07), kNoProgress).has_value());
  ASSERT_TRUE(fit_attention(again, samples_of(known_attention(), 1.07), kNoProgress).has_value());
  const AttentionRates& a = once.rates.attention.front();
  const AttentionRates& b = again.rates.attention.front();
  EXPECT_EQ(a.per_multiprocessor, b.per_multiprocessor);
  EXPECT_EQ(a.residual, b.residual);
}

TEST(AttentionFit, KeepsTheKernelWithAWindowApart) {
  std::vector<AttentionSample> samples = samples_of(known_attention());
  for (AttentionSample sample : samples_of(known_attention(), 1.5)) {
    sample.shape.sliding = true;  // 1.5 times slower, also where the window holds everything
    samples.push_back(sample);
  }
  Device device = without_attention();
  ASSERT_TRUE(fit_attention(device, samples, kNoProgress).has_value());
  ASSERT_EQ(device.rates.attention.size(), 2U);
  AttentionShape shape{8, 32, 8, 4096, 4096, 128, 128, false};
  const Seconds full = attention_prefill_time(device, shape);
  shape.sliding = true;
  EXPECT_NEAR(attention_prefill_time(device, shape) / full, 1.5, 0.05);
}

TEST(AttentionFit, RefusesRowsOfAWindowAlone) {
  std::vector<AttentionSample> samples = samples_of(known_attention());
  for (AttentionSample& sample : samples) sample.shape.sliding = true;
  Device device = example_h100();
  EXPECT_FALSE(fit_attention(device, samples, kNoProgress).has_value());
}

}  // namespace
}  // namespace trainyard
