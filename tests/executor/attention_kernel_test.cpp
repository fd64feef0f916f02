// In the host's attention, keys that a causal mask hides have no weight at all, not even the
// smallest positive float.
#include <gtest/gtest.h>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

constexpr int kAttendedTokens = 32, kAttendedHeads = 2, kAttendedWidth = 16;

// Attention over one sequence of random numbers.
struct Attended {
  explicit Attended(bool fused) {
    setting.training.sequence_length = kAttendedTokens;
    setting.training.stack.flash_attention = fused;
    operation.attention = {.batch = 1,
                           .heads = kAttendedHeads,
                           .kv_heads = kAttendedHeads,
                           .queries = kAttendedTokens,
                           .keys = kAttendedTokens,
                           .query_head_dim = kAttendedWidth,
                           .value_head_dim = kAttendedWidth};
  }
  void forward() {
    operation.kind = OperationKind::attention;
    compute(operation, {setting, {}, {}},
            Operands<float>{.in = {&q, &k, &v}, .out = {&out, &statistics}});
  }
  void backward() {
    operation.kind = OperationKind::attention_gradient;
    compute(operation, {setting, {}, {}},
            Operands<float>{.in = {&q, &k, &v, &out, &statistics, &dout}, .out = {&dq, &dk, &dv}});
  }

  static Tensor<float> noise() {
    return Tensor<float>::Random(kAttendedTokens, kAttendedHeads * kAttendedWidth);
  }
  Setting setting;
  Operation operation;
  Tensor<float> q = noise(), k = noise(), v = noise(), dout = noise();
  Tensor<float> out = noise(), dq = noise(), dk = noise(), dv = noise();
  Tensor<float> statistics = Tensor<float>::Zero(kAttendedTokens, kAttendedHeads);
};

TEST(AttentionOfTheHost, GivesHiddenKeysTheProbabilityZero) {
  Attended of(false);
  of.forward();
  for (int head = 0; head < kAttendedHeads; ++head) {
    for (int query = 0; query < kAttendedTokens; ++query) {
      for (int key = query + 1; key < kAttendedTokens; ++key) {
        ASSERT_EQ(of.statistics(query, head * kAttendedTokens + key), 0) << query << " " << key;
      }
    }
  }
}

// A weight of the smallest normal float, times 1e37, would already give 0.1.
TEST(AttentionOfTheHost, SeesNothingOfTheValuesOfHiddenKeys) {
  for (const bool fused : {true, false}) {
    Attended of(fused);
    of.v.setConstant(1e37F);
    of.v.row(0).setZero();
    of.forward();
    EXPECT_EQ(of.out.row(0).cwiseAbs().maxCoeff(), 0) << fused;
    EXPECT_GT(of.out.row(1).cwiseAbs().maxCoeff(), 0) << fused;
  }
}

// The first query sees only the first key, so only that key has a gradient if no other query has
// one.
TEST(AttentionOfTheHost, GivesHiddenKeysNoGradient) {
  for (const bool fused : {true, false}) {
    Attended of(fused);
    of.forward();
    of.dout.bottomRows(kAttendedTokens - 1).setZero();
    of.backward();
    EXPECT_GT(of.dv.row(0).cwiseAbs().minCoeff(), 0) << fused;
    EXPECT_EQ(of.dv.bottomRows(kAttendedTokens - 1).cwiseAbs().maxCoeff(), 0) << fused;
    EXPECT_EQ(of.dk.bottomRows(kAttendedTokens - 1).cwiseAbs().maxCoeff(), 0) << fused;
  }
}

// Probabilities below the smallest normal float, 1.2e-38, count as zero: e^-90 = 8e-40.
TEST(AttentionOfTheHost, GivesWhatIsHardlySeenTheProbabilityZero) {
  Attended of(false);
  of.q.setZero();
  of.k.setZero();
  of.q.col(0).setConstant(4);  // over √16: scores are the keys' first elements
  of.k(1, 0) = -90;
  of.forward();
  EXPECT_EQ(of.statistics(1, 1), 0);
  EXPECT_EQ(of.statistics(1, 0), 1);
  EXPECT_NEAR(of.statistics(2, 2), 0.5F, 1e-6F);
}

}  // namespace
}  // namespace trainyard
