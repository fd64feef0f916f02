// What a causal mask hides has no weight at all in the host's attention: not even the smallest
// number that a float has.
#include <gtest/gtest.h>

#include "executor/cpu/kernels/kernels.h"

namespace trainyard {
namespace {

constexpr int kTokens = 32, kHeads = 2, kWidth = 16;

// One sequence of noise.
struct Attended {
  explicit Attended(bool fused) {
    setting.training.sequence_length = kTokens;
    setting.training.stack.flash_attention = fused;
    operation.attention = {.batch = 1,
                           .heads = kHeads,
                           .kv_heads = kHeads,
                           .queries = kTokens,
                           .keys = kTokens,
                           .query_head_dim = kWidth,
                           .value_head_dim = kWidth};
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

  static Tensor<float> noise() { return Tensor<float>::Random(kTokens, kHeads * kWidth); }
  Setting setting;
  Operation operation;
  Tensor<float> q = noise(), k = noise(), v = noise(), dout = noise();
  Tensor<float> out = noise(), dq = noise(), dk = noise(), dv = noise();
  Tensor<float> statistics = Tensor<float>::Zero(kTokens, kHeads);
};

TEST(AttentionOfTheHost, GivesHiddenKeysTheProbabilityZero) {
  Attended of(false);
  of.forward();
  for (int head = 0; head < kHeads; ++head) {
    for (int query = 0; query < kTokens; ++query) {
      for (int key = query + 1; key < kTokens; ++key) {
        ASSERT_EQ(of.statistics(query, head * kTokens + key), 0) << query << " " << key;
      }
    }
  }
}

// 1e37 times the smallest normal float would be 0.1.
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

// The first query sees the first key alone, so only that has a gradient where no other query has.
TEST(AttentionOfTheHost, GivesHiddenKeysNoGradient) {
  for (const bool fused : {true, false}) {
    Attended of(fused);
    of.forward();
    of.dout.bottomRows(kTokens - 1).setZero();
    of.backward();
    EXPECT_GT(of.dv.row(0).cwiseAbs().minCoeff(), 0) << fused;
    EXPECT_EQ(of.dv.bottomRows(kTokens - 1).cwiseAbs().maxCoeff(), 0) << fused;
    EXPECT_EQ(of.dk.bottomRows(kTokens - 1).cwiseAbs().maxCoeff(), 0) << fused;
  }
}

// Probabilities below the smallest normal float, 1.2e-38, are as good as none: e^-90 = 8e-40.
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
