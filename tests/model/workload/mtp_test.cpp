// Multi-token prediction: what it adds to DeepSeek-V3, computed by hand from the dimensions of its
// report (arXiv 2412.19437, sections 2.2 and 4.2), and compared with published runs with and
// without it.
#include <gtest/gtest.h>

#include "model/workload/flop.h"
#include "model/workload/operators.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

Transformer deepseek_v3_with(int mtp_layers) {
  Transformer model = deepseek_v3();
  model.mtp_layers = mtp_layers;
  return model;
}

constexpr double kHidden = 7168;
constexpr double kExpert = 3 * kHidden * 2048;
constexpr double kAttention = kHidden * 1536 + 1536.0 * 128 * (128 + 64) + kHidden * (512 + 64) +
                              512.0 * 128 * (128 + 128) + 128.0 * 128 * kHidden + 1536 + 512;
constexpr double kRouter = 256 * kHidden + 256;
// One layer with its two norms, the projection and two norms in front of it, and one norm behind
// it.
constexpr double kMtp = kAttention + 257 * kExpert + kRouter + 2 * kHidden + 2 * kHidden * kHidden +
                        2 * kHidden + kHidden;

// 11.6 billion parameters. Embedding and head are shared with the network (its README_WEIGHTS.md:
// 11.5 billion unique parameters).
TEST(MultiTokenPrediction, OfDeepSeekV3HasItsParameters) {
  EXPECT_EQ(kMtp, 11'610'068'224);
  EXPECT_EQ(parameter_count(deepseek_v3_with(1), 4096), 671'026'419'200 + kMtp);
  EXPECT_EQ(parameter_count(deepseek_v3_with(2), 4096), 671'026'419'200 + 2 * kMtp);
  EXPECT_EQ(active_parameter_count(deepseek_v3_with(1), 4096),
            37'552'297'472 + kMtp - 248 * kExpert);
}

// Megatron-Bridge's DeepSeek-V3 at 4,096 tokens per sequence takes 0.250 TFLOP per token without
// and 0.260 with multi-token prediction, with causal attention
// (docs/performance-summary-archive.md, 25.09 to 26.02).
TEST(MultiTokenPrediction, OfDeepSeekV3HasThePublishedFlop) {
  Training training = modern(4096);
  const double tokens = 4096.0 * static_cast<double>(training.global_batch);
  const auto tera_a_token = [&](int mtp_layers) {
    const Flops flop = model_flop(deepseek_v3_with(mtp_layers), training, AttentionCount::causal);
    return flop.value() / tokens / 1e12;
  };
  EXPECT_NEAR(tera_a_token(0), 0.250, 0.001);
  EXPECT_NEAR(tera_a_token(1), 0.260, 0.001);
}

// Six FLOP per token and weight of the matrices on its way, the head included, and the full
// 3·2·s·a·(192 + 128) of the core.
TEST(MultiTokenPrediction, AddsTheFlopOfOneLayerAndOneHead) {
  const Training training = modern(4096);
  const double tokens = 4096.0 * static_cast<double>(training.global_batch);
  const double norms = 5 * kHidden + 1536 + 512 + 256;  // and the router's bias
  const double matrices = kMtp - 248 * kExpert - norms + 129280 * kHidden;
  const double core = 3 * 2 * 4096.0 * 128 * (192 + 128);
  const Flops added =
      model_flop(deepseek_v3_with(1), training) - model_flop(deepseek_v3(), training);
  EXPECT_NEAR(added.value() / tokens / (6 * matrices + core), 1, 1e-12);
}

// The projection under TP 4: 2h in, h/4 out.
TEST(MultiTokenPrediction, ProjectsStateAndEmbeddingToOne) {
  const Transformer model = deepseek_v3_with(1);
  const LayerShard shard{.tensor = 4, .sequence_parallel = true};
  const LayerKind kind = layer_kind(model, 61);
  EXPECT_TRUE(kind.mtp && kind.moe);
  const OperatorList list = layer_operators(model, modern(4096), shard, kind);
  const OperatorList plain = layer_operators(model, modern(4096), shard, layer_kind(model, 60));
  ASSERT_EQ(list.size(), plain.size() + 4);
  const Operator& projection = list[3];
  EXPECT_EQ(projection.kind, OperatorKind::mtp_projection);
  EXPECT_EQ(projection.gemm.m, 4096);
  EXPECT_EQ(projection.gemm.k, 2 * 7168);
  EXPECT_EQ(projection.gemm.n, 7168 / 4);
  EXPECT_EQ(projection.saved, Bytes(2.0 * 1024 * 2 * 7168));  // a quarter of the tokens
}

TEST(MultiTokenPrediction, IsNotThereUnlessItIsAskedFor) {
  EXPECT_EQ(deepseek_v3().mtp_layers, 0);
  EXPECT_EQ(layers_with_mtp(deepseek_v3()), 61);
}

}  // namespace
}  // namespace trainyard
