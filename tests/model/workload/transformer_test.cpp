#include "model/workload/transformer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/workload/models.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

std::int64_t exact(double count) { return static_cast<std::int64_t>(count); }

struct PublishedModel {
  const char* file;
  std::int64_t parameters, active;
};

class PublishedParameters : public testing::TestWithParam<PublishedModel> {};

// Handbook §2, table of test numbers.
TEST_P(PublishedParameters, AreCountedExactly) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto file = shared / "models" / "hf" / GetParam().file;
  ASSERT_TRUE(std::filesystem::exists(file)) << file;
  const Transformer model = read_huggingface(file);
  EXPECT_EQ(exact(parameter_count(model, 4096)), GetParam().parameters);
  EXPECT_EQ(exact(active_parameter_count(model, 4096)), GetParam().active);
}

INSTANTIATE_TEST_SUITE_P(
    Handbook, PublishedParameters,
    testing::Values(PublishedModel{"Meta-Llama-3.1-8B.json", 8030261248, 8030261248},
                    PublishedModel{"Meta-Llama-3.1-70B.json", 70553706496, 70553706496},
                    PublishedModel{"Meta-Llama-3.1-405B.json", 405853388800, 405853388800},
                    PublishedModel{"Mixtral-8x7B-v0.1.json", 46702792704, 12879925248},
                    PublishedModel{"Mixtral-8x22B-v0.1.json", 140620634112, 39152031744},
                    PublishedModel{"DeepSeek-V3.json", 671026419200, 37552297472},
                    PublishedModel{"Qwen3-32B.json", 32762123264, 32762123264},
                    PublishedModel{"Qwen3-235B-A22B.json", 235093634560, 22190763520},
                    PublishedModel{"gpt-oss-20b.json", 20914757184, 4187440704}));

// The same numbers without the shared files, so that a checkout alone holds the count to account.
TEST(Parameters, OfTheWrittenOutModelsEqualTheHandbook) {
  EXPECT_EQ(exact(parameter_count(llama_8b(), 8192)), 8030261248);
  EXPECT_EQ(exact(parameter_count(deepseek_v3(), 4096)), 671026419200);
  EXPECT_EQ(exact(active_parameter_count(deepseek_v3(), 4096)), 37552297472);
  EXPECT_EQ(exact(parameter_count(gpt_oss_20b(), 4096)), 20914757184);
  EXPECT_EQ(exact(active_parameter_count(gpt_oss_20b(), 4096)), 4187440704);
}

// Narayanan et al. 2021, eq. 2: 12Lh²(1 + 13/(12h) + (V + s)/(12Lh)); the final norm adds 2h.
TEST(Parameters, OfGpt3FollowTheClosedForm) {
  EXPECT_EQ(exact(parameter_count(gpt3_175b(), 2048)), 174615846912);
  EXPECT_EQ(exact(parameter_count(gpt3_175b(), 2048)) - 2 * 12288, 174615822336);
}

// golden.md: Llama-2-7B has 202,383,360 parameters a layer and 6,738,415,616 in all.
TEST(Parameters, OfLlama2AreCountedPerLayer) {
  Transformer model = llama_8b();
  model.kv_heads = 32;
  model.ffn_size = 11008;
  model.vocabulary = 32000;
  EXPECT_EQ(exact(layer_parameters(model, {}).total()), 202383360);
  EXPECT_EQ(exact(parameter_count(model, 4096)), 6738415616);
}

// Handbook §2: without a query rank the query is h·a(d_nope + d_rope). DeepSeek-V3's query is
// 7168·1536 + 1536 (norm) + 1536·128·192; replaced by 7168·128·192.
TEST(Parameters, OfLatentAttentionWithoutAQueryRankProjectTheQueryDirectly) {
  const Transformer ranked = deepseek_v3();
  Transformer direct = ranked;
  direct.latent_attention->query_rank = 0;
  const double query = 7168.0 * 1536 + 1536 + 1536.0 * 128 * 192;
  EXPECT_EQ(layer_parameters(ranked, {}).total() - layer_parameters(direct, {}).total(),
            query - 7168.0 * 128 * 192);
}

// Qwen2: a bias on the QKV projection only, (a + 2g)·d.
TEST(Parameters, OfAQkvBiasAreColumns) {
  Transformer biased = llama_8b();
  biased.qkv_biases = true;
  const LayerParameters with = layer_parameters(biased, {}),
                        without = layer_parameters(llama_8b(), {});
  EXPECT_EQ(with.attention_sharded - without.attention_sharded, 32 * 128);
  EXPECT_EQ(with.kv_sharded - without.kv_sharded, 2 * 8 * 128);
  EXPECT_EQ(with.replicated, without.replicated);
}

// Handbook §12.1: a rank's replicated part. GPT-3: two LayerNorms of 2h, two row-parallel biases.
TEST(Parameters, ReplicatedOverTensorParallelRanksAreNormsAndRowBiases) {
  EXPECT_EQ(layer_parameters(gpt3_175b(), {}).replicated, 6 * 12288);
  // DeepSeek-V3 MoE layer: norms 2h, latent norms, down-projections, router with its correction.
  const LayerParameters moe = layer_parameters(deepseek_v3(), {.moe = true});
  EXPECT_EQ(moe.router, 256 * 7168 + 256);
  EXPECT_EQ(moe.replicated, 2 * 7168 + 1536 + 512 + 7168 * (1536 + 512 + 64) + 256 * 7168 + 256);
}

// gpt-oss: each of 32 experts has an up bias of 2f and a down bias of h.
TEST(Parameters, OfExpertBiasesAreSplitByHowTheirProjectionIsCut) {
  const LayerParameters layer = layer_parameters(gpt_oss_20b(), {.moe = true});
  EXPECT_EQ(layer.experts, 32 * (3.0 * 2880 * 2880 + 2 * 2880));
  EXPECT_EQ(layer.expert_biases, 32 * 2880);
}

TEST(LayerKinds, FollowDenseLayersAndMoeEvery) {
  const Transformer model = deepseek_v3();
  EXPECT_FALSE(layer_kind(model, 2).moe);
  EXPECT_TRUE(layer_kind(model, 3).moe);
  Transformer alternate = model;
  alternate.dense_layers = 0;
  alternate.moe_every = 2;  // layers 1, 3, 5, …
  EXPECT_FALSE(layer_kind(alternate, 0).moe);
  EXPECT_TRUE(layer_kind(alternate, 1).moe);
  EXPECT_FALSE(layer_kind(llama_8b(), 5).moe);
}

// gpt-oss-20b.json, layer_types: sliding and full attention take turns, sliding first.
TEST(LayerKinds, SlideInGptOssOnEvenLayers) {
  const Transformer model = gpt_oss_20b();
  EXPECT_TRUE(layer_kind(model, 0).sliding);
  EXPECT_FALSE(layer_kind(model, 1).sliding);
  EXPECT_TRUE(layer_kind(model, 22).sliding);
}

// Qwen2's max_window_layers: those before it attend in full.
TEST(LayerKinds, SlideBeyondTheLeadingLayersOfFullAttention) {
  Transformer model = gpt_oss_20b();
  model.full_attention_layers = 3;
  model.full_attention_every = 0;
  EXPECT_FALSE(layer_kind(model, 2).sliding);
  EXPECT_TRUE(layer_kind(model, 3).sliding);
  EXPECT_TRUE(layer_kind(model, 23).sliding);
  model.full_attention_every = 2;
  EXPECT_FALSE(layer_kind(model, 3).sliding);
  EXPECT_TRUE(layer_kind(model, 4).sliding);
}

TEST(LayerKinds, AreNumberedWithoutGaps) {
  for (int index = 0; index < kLayerKinds; ++index) {
    EXPECT_EQ(index_of(layer_kind_at(deepseek_v3(), index)), index);
  }
}

}  // namespace
}  // namespace trainyard
