#include "model/cost/kernels/attention.h"

#include <gtest/gtest.h>

#include "tests/model/cost/example_devices.h"

namespace trainyard {
namespace {

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

}  // namespace
}  // namespace trainyard
