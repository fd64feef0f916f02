// What a layer keeps for its backward pass, compared with the published sums (handbook §7).
#include <gtest/gtest.h>

#include "model/workload/operators.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

constexpr double kMebibyte = 1048576;

Bytes saved(const OperatorList& list, bool core_recomputed = false) {
  Bytes sum;
  for (const Operator& op : list) {
    if (!(core_recomputed && op.in_attention_core)) sum += op.saved;
  }
  return sum;
}

double gpt3_layer(const LayerShard& shard, bool core_recomputed = false) {
  const auto list = layer_operators(gpt3_175b(), megatron_2022(), shard, {});
  return saved(list, core_recomputed).value() / kMebibyte;
}

// golden.md, activations of one layer of GPT-3, b = 1.
TEST(SavedActivations, OfGpt3EqualTheGoldenValues) {
  const LayerShard tensor{.tensor = 8}, sequence{.tensor = 8, .sequence_parallel = true};
  EXPECT_DOUBLE_EQ(gpt3_layer({}), 2736);
  EXPECT_DOUBLE_EQ(gpt3_layer(tensor), 552);
  EXPECT_DOUBLE_EQ(gpt3_layer(sequence), 342);
  EXPECT_DOUBLE_EQ(gpt3_layer(sequence, true), 102);
  EXPECT_EQ(layer_input_bytes(gpt3_175b(), megatron_2022(), tensor).value(), 48 * kMebibyte);
  EXPECT_EQ(layer_input_bytes(gpt3_175b(), megatron_2022(), sequence).value(), 6 * kMebibyte);
}

// Korthikanti et al. 2022, table 2, for shapes other than GPT-3's.
TEST(SavedActivations, FollowKorthikantisRows) {
  for (const int t : {1, 2, 4}) {
    Transformer model = gpt3_175b();
    model.hidden_size = 1536;
    model.attention_heads = model.kv_heads = 24;
    model.head_dim = 64;
    model.ffn_size = 4 * 1536;
    const double s = 768, b = 3, h = 1536, scores = 5 * 24 * s / h;
    const Training training = megatron_2022(12, 768);
    LayerShard shard{.tensor = t, .micro_batch = 3};
    const auto tensor = layer_operators(model, training, shard, {});
    EXPECT_DOUBLE_EQ(saved(tensor).value(), s * b * h * (10 + 24.0 / t + scores / t));
    shard.sequence_parallel = true;
    const auto sequence = layer_operators(model, training, shard, {});
    EXPECT_DOUBLE_EQ(saved(sequence).value(), s * b * h / t * (34 + scores));
    EXPECT_DOUBLE_EQ(saved(sequence, true).value(), s * b * h / t * 34);
  }
}

// The same paper, §4.3: the embedding keeps a mask, the last norm and the head their inputs
// (4sbh/t; the head's logits, 4sbV/t in fp32, are the stack's saved_logit_bytes).
TEST(SavedActivations, OfTheEndsAreMaskNormAndHeadInput) {
  const LayerShard shard{.tensor = 8, .sequence_parallel = true};
  const double sbh = 2048.0 * 12288;
  EXPECT_EQ(saved(embedding_operators(gpt3_175b(), megatron_2022(), shard)).value(), sbh / 8);
  EXPECT_EQ(saved(head_operators(gpt3_175b(), megatron_2022(), shard)).value(), 4 * sbh / 8);
}

// The same paper, §4.2.2: sequence parallelism would have to keep what it gathered, and "an extra
// all-gather" avoids that. A stack that keeps it has the inputs of a layer's two column-parallel
// GEMMs, 2sbh each, and the head's input whole.
TEST(SavedActivations, OfGatheredInputsAreWholeWhereTheyAreKept) {
  const LayerShard shard{.tensor = 8, .sequence_parallel = true};
  const double sbh = 2048.0 * 12288;
  Training training = megatron_2022();
  const auto bytes = [&] {
    return std::pair(saved(layer_operators(gpt3_175b(), training, shard, {})).value(),
                     saved(head_operators(gpt3_175b(), training, shard)).value());
  };
  const auto [layer, head] = bytes();
  training.stack.keeps_gathered_inputs = true;
  const auto [layer_whole, head_whole] = bytes();
  EXPECT_DOUBLE_EQ(layer_whole - layer, 2 * 2 * sbh * 7 / 8);
  EXPECT_DOUBLE_EQ(head_whole - head, 2 * sbh * 7 / 8);
}

// Handbook §7, Llama-style: [2h + 2h + 2ad + 4gd + 2ad + 4a + 2h + 2h + 4f + 2f]/t a token.
TEST(SavedActivations, OfLlamaFollowTheGeneralForm) {
  const double h = 4096, ad = 32 * 128, gd = 8 * 128, a = 32, f = 14336;
  const double token = 4 * 2 * h + 2 * ad + 4 * gd + 2 * ad + 4 * a + 4 * f + 2 * f;
  const LayerShard shard{.tensor = 4, .sequence_parallel = true, .context = 2, .micro_batch = 2};
  const auto list = layer_operators(llama_8b(), modern(8192), shard, {});
  EXPECT_DOUBLE_EQ(saved(list).value(), 2 * 4096 * token / 4);
  // Recomputing the core is free of effect under flash attention (design §3).
  EXPECT_EQ(saved(list, true), saved(list));
}

// Transformer Engine's fp8 keeps the input of each layer GEMM once, in one byte. Norms, Q, K, V,
// gate and up stay in two bytes, and so does the attention's own output.
TEST(SavedActivations, OfEightBitsKeepCastInputs) {
  Training training = modern(4096);
  training.precision = *find_precision_recipe("fp8");
  const double h = 4096, ad = 32 * 128, gd = 8 * 128, a = 32, f = 14336;
  const double token = 2 * h + h + 2 * ad + 4 * gd + (2 + 1) * ad + 4 * a + 2 * h + h + 4 * f + f;
  EXPECT_DOUBLE_EQ(saved(layer_operators(llama_8b(), training, {}, {})).value(), 4096 * token);
}

// pytorch/ao pull request 936: torch.compile keeps the transposed fp8 weights for the backward
// pass, one byte for each weight of a layer's GEMMs: (32 + 2·8)·128·4,096 for query, key and value,
// 4,096² for the output, 3·4,096·14,336 for the MLP.
TEST(SavedActivations, OfACompiledLayerInEightBitsKeepTheCastWeights) {
  Training training = modern(4096);
  training.precision = *find_precision_recipe("fp8");
  const double eager = saved(layer_operators(llama_8b(), training, {}, {})).value();
  training.stack.compiled = true;
  const double compiled = saved(layer_operators(llama_8b(), training, {}, {})).value();
  EXPECT_DOUBLE_EQ(compiled - eager, 48 * 128 * 4096.0 + 4096.0 * 4096 + 3 * 4096.0 * 14336);
}

// Ulysses keeps the attention's output twice (2ad more): a/c heads of all tokens for the kernel,
// and, after the last all-to-all, all heads of a c-th of the tokens for the projection. The
// exchange of queries, keys and values keeps what it received instead of what it sent.
TEST(SavedActivations, OfUlyssesKeepTheOutputBeforeAndBehindTheExchange) {
  const auto layer = [](ContextAlgorithm algorithm) {
    const LayerShard shard{.context = 4, .context_algorithm = algorithm};
    return saved(layer_operators(llama_8b(), modern(8192), shard, {})).value();
  };
  const double tokens = 8192 / 4, ad = 32 * 128;
  EXPECT_DOUBLE_EQ(layer(ContextAlgorithm::ulysses) - layer(ContextAlgorithm::ring),
                   tokens * 2 * ad);
}

// Mixtral: the MLP's part is the router's input, the fp32 scores of E experts, and for each of k
// copies its index and weight, the expert's input, gate and up, and their product.
TEST(SavedActivations, OfExpertsAreKeptPerRoutedCopy) {
  const double h = 4096, f = 14336, dense_mlp = 2 * h + 6 * f;
  const double moe = 2 * h + 4 * 8 + 2 * (8 + 2 * h + 6 * f);
  const auto layer = [](LayerKind kind, int expert) {
    return saved(layer_operators(mixtral_8x7b(), modern(4096), {.expert = expert}, kind)).value();
  };
  EXPECT_DOUBLE_EQ(layer({.moe = true}, 1) - layer({}, 1), 4096 * (moe - dense_mlp));
  EXPECT_DOUBLE_EQ(layer({.moe = true}, 8), layer({.moe = true}, 1));
}

// DeepSeek-V3's attention keeps, in 16 bits, the layer input, the latent vectors before and after
// their norms, Q, K, V, the output and the log-sum-exp: 2h + 2h + 4(r_q + r_kv) + 2a(2·192 + 2·128)
// + 4a bytes per token.
TEST(SavedActivations, OfLatentAttentionKeepBothLatentsAndTheHeads) {
  const double attention = 4 * 7168 + 4 * (1536 + 512) + 2 * 128 * (2 * 192 + 2 * 128) + 4 * 128;
  const double mlp = 4 * 7168 + 6 * 18432;
  EXPECT_DOUBLE_EQ(saved(layer_operators(deepseek_v3(), modern(4096), {}, {})).value(),
                   4096 * (attention + mlp));
}

// Qwen3 also keeps the heads before their norm, 2(a + g)d.
TEST(SavedActivations, OfQkNormKeepTheHeadsBeforeIt) {
  Transformer normed = llama_8b();
  normed.qk_norm = true;
  const Bytes with = saved(layer_operators(normed, modern(), {}, {}));
  const Bytes without = saved(layer_operators(llama_8b(), modern(), {}, {}));
  EXPECT_EQ((with - without).value(), 4096.0 * 2 * (32 + 8) * 128);
}

}  // namespace
}  // namespace trainyard
