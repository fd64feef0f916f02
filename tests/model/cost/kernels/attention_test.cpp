#include "model/cost/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

AttentionShape causal(double batch, double sequence, double heads, double kv_heads, double dim) {
  return {batch, heads, kv_heads, sequence, sequence, dim, dim, false};
}

// The expected values come from the fitting code with minimal traffic, because training writes no
// KV cache.
TEST(AttentionTime, AgreesWithTheFittingCode) {
  const Device h100 = example_h100();
  EXPECT_NEAR(attention_time(h100, Dtype::bf16, causal(1, 4096, 32, 8, 128), 1).value(),
              0.0003142334, 1e-9);
  EXPECT_NEAR(attention_time(h100, Dtype::bf16, causal(1, 8192, 4, 1, 128), 1).value(),
              0.0001999491, 1e-9);
  EXPECT_NEAR(attention_time(h100, Dtype::bf16, causal(1, 131072, 4, 1, 128), 1).value(),
              0.03120677, 1e-7);
  EXPECT_NEAR(attention_time(example_a100(), Dtype::bf16, causal(2, 4096, 32, 8, 128), 1).value(),
              0.002019761, 1e-8);
}

// 96 lies midway between 64 and 128, and so does its time. For tables that lack a head dimension,
// interpolated times are nearer to the measurement than interpolated rates (docs/accuracy.md).
TEST(AttentionTime, LiesBetweenTheTimesAtTwoHeadDimensions) {
  const Device h100 = example_h100();
  const auto time = [&](double head_dim) {
    return attention_time(h100, Dtype::bf16, causal(1, 4096, 24, 24, head_dim), 1);
  };
  EXPECT_GT(time(128), time(64));
  EXPECT_NEAR(time(96) / ((time(64) + time(128)) / 2), 1, 1e-12);
}

TEST(AttentionTime, OfContextParallelRanksAddsUpToTheWhole) {
  // On the ideal device, s/c queries against s keys, causal, take 1/c of the tiles.
  const Device device = ideal_device();
  const Seconds whole = attention_time(device, Dtype::bf16, causal(1, 65536, 32, 32, 128), 1);
  AttentionShape quarter = causal(1, 65536, 32, 32, 128);
  quarter.queries = 16384;
  EXPECT_NEAR(attention_time(device, Dtype::bf16, quarter, 1) / whole, 0.25, 0.01);
}

// The same under a window: of fewer keys than a rank has rows, of more, and of almost all keys.
TEST(AttentionTime, OfContextParallelRanksUnderAWindowAddsUpToTheWhole) {
  const Device device = ideal_device();
  for (const double keys : {4096.0, 24576.0, 65535.0}) {
    AttentionShape whole = causal(1, 65536, 32, 32, 128);
    whole.keys = keys;
    whole.sliding = true;
    AttentionShape quarter = whole;
    quarter.queries = 16384;
    quarter.context_ranks = 4;
    const Seconds time = attention_time(device, Dtype::bf16, whole, 1);
    EXPECT_NEAR(attention_time(device, Dtype::bf16, quarter, 1) / time, 0.25, 0.01) << keys;
  }
}

TEST(AttentionTime, OfASlidingWindowGrowsWithTheWindowNotTheSequence) {
  AttentionShape window = causal(1, 65536, 32, 32, 128);
  window.keys = 4096;
  window.sliding = true;
  // 512 query tiles; full: 512·513/2 key tiles; window: at most 33 each.
  const Seconds full =
      attention_time(ideal_device(), Dtype::bf16, causal(1, 65536, 32, 32, 128), 1);
  EXPECT_LT(attention_time(ideal_device(), Dtype::bf16, window, 1) / full,
            33.0 * 512 / (512 * 513 / 2) + 0.01);
}

TEST(AttentionTime, TakesTheRatesOfTheKernelWithAWindow) {
  Device device = ideal_device();
  AttentionRates slower = device.rates.attention.front();
  slower.sliding = true;
  slower.per_multiprocessor = slower.per_multiprocessor / 2;
  AttentionShape window = causal(8, 8192, 32, 32, 128);
  window.keys = 1024;
  window.sliding = true;
  const Seconds before = attention_time(device, Dtype::bf16, window, 1);
  device.rates.attention.push_back(slower);
  // The traffic (4·8·8192·32·128·2 bytes at 1 TB/s, doubled for the KV heads) stays, and tiles take
  // twice as long.
  const Seconds traffic(2.0 * 4 * 8 * 8192 * 32 * 128 / 1e12);
  EXPECT_NEAR(attention_time(device, Dtype::bf16, window, 1) / (2 * before - traffic), 1, 1e-12);
  EXPECT_EQ(attention_time(device, Dtype::bf16, causal(8, 8192, 32, 32, 128), 1),
            attention_time(ideal_device(), Dtype::bf16, causal(8, 8192, 32, 32, 128), 1));
}

// The plain kernel can also do what a window asks for, so the faster of both kernels counts. The
// windowed kernel has a quarter of its rate here. For 512 keys it is chosen: each of 64 query tiles
// has at most 5 key tiles, as long as 20 of the plain kernel, which has 32.5 on average. For 4,096
// keys, up to 33 tiles, it is not.
TEST(AttentionTime, OfAWindowIsNeverAboveThatOfThePlainKernel) {
  Device device = ideal_device();
  device.rates.attention.push_back(device.rates.attention.front());
  device.rates.attention.back().sliding = true;
  device.rates.attention.back().per_multiprocessor = FlopsPerSecond(0.25e12);
  const Seconds plain = attention_time(device, Dtype::bf16, causal(8, 8192, 32, 32, 128), 1);
  const auto with_window = [&](double keys) {
    AttentionShape shape = causal(8, 8192, 32, 32, 128);
    shape.keys = keys;
    shape.sliding = true;
    return attention_time(device, Dtype::bf16, shape, 1);
  };
  EXPECT_LT(with_window(512), plain);
  EXPECT_EQ(with_window(4096), plain);
  for (double keys = 128; keys < 8192; keys += 128) EXPECT_LE(with_window(keys), plain) << keys;
}

// The windowed kernel was measured at 128 keys, at half the plain kernel's rate. With a window of
// 128, each of 64 query tiles of 128 has 2 key tiles, the first one 1: 127. With a window of 4,096
// it has 33, the first 32 fewer: 1,584. The further 1,457 run at the plain kernel's rate, so the
// sum is worth 2·127 + 1,457 plain tiles; the plain kernel over all keys has 2,080. A tile: 4·128³
// FLOP at 1 TFLOP/s, 256 heads on 100 multiprocessors; traffic as above.
TEST(AttentionTime, OfAWindowWiderThanMeasuredHasFurtherKeysAtThePlainKernelsRate) {
  Device device = ideal_device();
  AttentionRates narrow = device.rates.attention.front();
  narrow.sliding = true;
  narrow.window = 128;
  narrow.per_multiprocessor = narrow.per_multiprocessor / 2;
  device.rates.attention.push_back(narrow);
  const auto with_window = [&](double keys) {
    AttentionShape shape = causal(8, 8192, 32, 32, 128);
    shape.keys = keys;
    shape.sliding = true;
    return attention_time(device, Dtype::bf16, shape, 1).value();
  };
  const double tile = 4.0 * 128 * 128 * 128 / 1e12 * 256 / 100;
  const double traffic = 2.0 * 4 * 8 * 8192 * 32 * 128 / 1e12;
  EXPECT_NEAR(with_window(128), 2 * 127 * tile + traffic, 1e-12);
  EXPECT_NEAR(with_window(4096), (2 * 127 + 1457) * tile + traffic, 1e-12);
  EXPECT_NEAR(with_window(8192), 2080 * tile + traffic, 1e-12);
}

// Heads of 256 with a window, although the windowed kernel was measured at 128 only: they take the
// plain kernel's rates. Heads narrower than 128 take the windowed kernel's rates.
TEST(AttentionTime, TakesTheRatesOfThePlainKernelForHeadsThatNoWindowedOneWasMeasuredAt) {
  Device plain = ideal_device();
  plain.rates.attention.push_back(plain.rates.attention.front());
  plain.rates.attention.back().head_dim = 256;
  Device both = plain;
  both.rates.attention.push_back(plain.rates.attention.front());
  both.rates.attention.back().sliding = true;
  both.rates.attention.back().per_multiprocessor =
      plain.rates.attention.front().per_multiprocessor / 2;
  const auto windowed = [](double head_dim) {
    AttentionShape shape = causal(1, 8192, 16, 8, head_dim);
    shape.keys = 1024;
    shape.sliding = true;
    return shape;
  };
  EXPECT_EQ(attention_time(both, Dtype::bf16, windowed(256), 1),
            attention_time(plain, Dtype::bf16, windowed(256), 1));
  EXPECT_GT(attention_time(both, Dtype::bf16, windowed(64), 1),
            attention_time(plain, Dtype::bf16, windowed(64), 1));
}

TEST(AttentionTime, TakesAsMuchLongerAsTheResidualSays) {
  Device device = ideal_device();
  // The residual's coordinates are log2 of sequence, batch × heads, heads / KV heads: 4096 = 2^12,
  // 64 = 2^6, 4 = 2^2.
  device.rates.attention.front().residual = {{{10, 14}, {0, 8}, {0, 4}},
                                             {0, 0, 0, 0, 0.4, 0.4, 0.4, 0.4}};
  const AttentionShape shape = causal(2, 4096, 32, 8, 128);
  EXPECT_NEAR(attention_time(device, Dtype::bf16, shape, 1) /
                  attention_time(ideal_device(), Dtype::bf16, shape, 1),
              std::exp(0.2), 1e-12);
}

TEST(AttentionPrefillTime, PaysForTheCacheThatItWrites) {
  Device device = ideal_device();
  const AttentionShape shape = causal(1, 8192, 32, 8, 128);
  const Seconds plain = attention_prefill_time(device, shape);
  EXPECT_EQ(plain, attention_time(device, Dtype::bf16, shape, 1));
  device.rates.attention.front().query_traffic = 3;
  // Q and O move once more each, twice: 2·2·2 bytes · 8192 · 32 · 128 at 1 TB/s.
  EXPECT_NEAR((attention_prefill_time(device, shape) - plain).value(),
              2 * 2 * 2.0 * 8192 * 32 * 128 / 1e12, 1e-12);
}

TEST(AttentionPrefillTime, HasItsTrafficFromTheCacheWhileThatHoldsIt) {
  Device device = ideal_device();
  device.rates.attention.front().cache = Bytes(100e6);
  device.rates.attention.front().cached_share = 0.1;
  const auto saved = [&](double sequence) {
    const AttentionShape shape = causal(1, sequence, 32, 32, 128);
    const double traffic = 2.0 * 2 * 2 * sequence * 32 * 128 / 1e12;
    return (attention_prefill_time(ideal_device(), shape) - attention_prefill_time(device, shape))
               .value() /
           traffic;
  };
  EXPECT_NEAR(saved(256), 0.9, 0.01);     // 8 MB
  EXPECT_NEAR(saved(131072), 0.0, 0.01);  // 4 GB
}

}  // namespace
}  // namespace trainyard
