#include "model/workload/operators.h"

#include <gtest/gtest.h>

#include <optional>

#include "model/plan/layer_shard.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

// The one operator of a kind; fails where there is none.
Operator only(const OperatorList& list, OperatorKind kind) {
  std::optional<Operator> found;
  for (const Operator& op : list) {
    if (op.kind == kind) {
      EXPECT_FALSE(found) << "two operators of kind " << static_cast<int>(kind);
      found = op;
    }
  }
  EXPECT_TRUE(found) << "no operator of kind " << static_cast<int>(kind);
  return found.value_or(Operator{});
}

void expect_gemm(const Operator& op, double m, double k, double n, double groups = 1) {
  EXPECT_DOUBLE_EQ(op.gemm.m, m);
  EXPECT_DOUBLE_EQ(op.gemm.k, k);
  EXPECT_DOUBLE_EQ(op.gemm.n, n);
  EXPECT_DOUBLE_EQ(op.gemm.groups, groups);
  EXPECT_DOUBLE_EQ(op.forward.value(), 2 * m * k * n * groups);
}

// Handbook §4, table of shapes: Llama-3.1-8B, b = 2, s = 4096, c = 2, t = 4: n = 4096.
TEST(LayerOperators, HaveTheShapesOfTheHandbook) {
  const LayerShard shard{.tensor = 4, .sequence_parallel = true, .context = 2, .micro_batch = 2};
  const OperatorList list = layer_operators(llama_8b(), modern(), shard, {});
  expect_gemm(only(list, OperatorKind::qkv_projection), 4096, 4096, 128 * (32 + 16) / 4);
  expect_gemm(only(list, OperatorKind::output_projection), 4096, 1024, 4096);
  expect_gemm(only(list, OperatorKind::mlp_up), 4096, 4096, 2 * 14336 / 4);
  expect_gemm(only(list, OperatorKind::mlp_down), 4096, 14336 / 4, 4096);
  const Operator core = only(list, OperatorKind::attention_core);
  EXPECT_EQ(core.attention.heads, 8);
  EXPECT_EQ(core.attention.kv_heads, 2);
  EXPECT_EQ(core.attention.queries, 2048);
  EXPECT_EQ(core.attention.keys, 4096);
  EXPECT_DOUBLE_EQ(core.forward.value(), 2 * 4.0 * 2048 * 4096 * 8 * 128);
}

// A width of 1,000,000 · 4,096 elements, more than an int holds.
TEST(LayerOperators, HaveMoreElementsOfHeadsThanAnIntHolds) {
  Transformer wide = llama_8b();
  wide.attention_heads = wide.kv_heads = 1'000'000;
  wide.head_dim = 4096;
  const OperatorList list = layer_operators(wide, modern(), {.micro_batch = 1}, {});
  EXPECT_DOUBLE_EQ(only(list, OperatorKind::output_projection).gemm.k, 4.096e9);
}

// Ulysses divides heads where a ring divides queries; the work of a rank is the same.
TEST(LayerOperators, OfUlyssesSplitHeadsWhereRingSplitsQueries) {
  LayerShard shard{.tensor = 2, .context = 4, .context_algorithm = ContextAlgorithm::ring};
  const auto ring =
      only(layer_operators(llama_8b(), modern(), shard, {}), OperatorKind::attention_core);
  shard.context_algorithm = ContextAlgorithm::ulysses;
  const auto ulysses =
      only(layer_operators(llama_8b(), modern(), shard, {}), OperatorKind::attention_core);
  EXPECT_EQ(ulysses.forward, ring.forward);
  EXPECT_EQ(ulysses.attention.heads, 4);
  EXPECT_EQ(ulysses.attention.queries, 4096);
  EXPECT_EQ(ring.attention.heads, 16);
  EXPECT_EQ(ring.attention.queries, 1024);
}

// g = 8 < t = 32: every rank computes one whole KV head, four ranks the same one.
TEST(LayerOperators, ReplicateKvHeadsBeyondTheirNumber) {
  const LayerShard shard{.tensor = 32, .sequence_parallel = true};
  const Operator qkv =
      only(layer_operators(llama_8b(), modern(), shard, {}), OperatorKind::qkv_projection);
  expect_gemm(qkv, 4096, 4096, 128 * (1 + 2));
  EXPECT_DOUBLE_EQ(qkv.replicas, 32 * 3.0 / (32 + 16));
}

// Mixtral, t = 2 with SP, e = 4, e_t = 2: n/t = 2048 tokens a rank, of 8 ranks, k = 2 of E = 8.
TEST(LayerOperators, GroupTheLocalExperts) {
  const LayerShard shard{
      .tensor = 2, .sequence_parallel = true, .expert = 4, .expert_tensor = 2, .load_imbalance = 1};
  const auto list = layer_operators(mixtral_8x7b(), modern(), shard, {.moe = true});
  const Operator up = only(list, OperatorKind::expert_up);
  EXPECT_EQ(up.cls, OperatorClass::grouped_gemm);
  expect_gemm(up, 2048.0 * 8 * 2 / 8, 4096, 2 * 14336 / 2, 2);
  expect_gemm(only(list, OperatorKind::expert_down), 4096, 14336 / 2, 4096, 2);
  expect_gemm(only(list, OperatorKind::router), 2048, 4096, 8);
}

// The load of the slowest rank is work for that rank but does not count as model FLOP.
TEST(LayerOperators, LoadImbalanceIsWorkThatModelFlopDoNotCount) {
  LayerShard shard{.expert = 8};
  const auto even = only(layer_operators(mixtral_8x7b(), modern(), shard, {.moe = true}),
                         OperatorKind::expert_up);
  shard.load_imbalance = 1.5;
  const auto slow = only(layer_operators(mixtral_8x7b(), modern(), shard, {.moe = true}),
                         OperatorKind::expert_up);
  EXPECT_DOUBLE_EQ(slow.forward.value(), 1.5 * even.forward.value());
  EXPECT_DOUBLE_EQ((slow.forward / slow.replicas).value(), even.forward.value());
}

// golden.md: 4,096 tokens, k = 2, E = 64, factor 1.25. A whole number is not rounded up.
TEST(ExpertCapacity, IsTheCeilingOfTheScaledMean) {
  EXPECT_EQ(expert_capacity(4096, 2, 64, 1.25), 160);
  EXPECT_EQ(expert_capacity(4097, 2, 64, 1.25), 161);
  EXPECT_EQ(expert_capacity(100, 1, 1, 1.1), 110);
}

// A capacity factor of 1.25 cuts a load of 1.5 and leaves a load of 1.2.
TEST(ExpertCapacity, CapsTheSlowestRankOnly) {
  LayerShard shard{.expert = 8, .capacity_factor = 1.25, .load_imbalance = 1.5};
  const auto rows = [&] {
    return only(layer_operators(mixtral_8x7b(), modern(), shard, {.moe = true}),
                OperatorKind::expert_up)
        .gemm.m;
  };
  EXPECT_DOUBLE_EQ(rows(), 4096 * 2 * 1.25);
  shard.load_imbalance = 1.2;
  EXPECT_DOUBLE_EQ(rows(), 4096 * 2 * 1.2);
}

// Of 4,096 tokens with two experts each, 1,024 · f go to one of eight experts.
TEST(RoutedLoad, IsThatOfTheBusiestRankOrTheCapacityWhereThatIsLess) {
  const auto load = [](double capacity, double imbalance) {
    const LayerShard shard{.expert = 8, .capacity_factor = capacity, .load_imbalance = imbalance};
    return routed_load(mixtral_8x7b(), shard, 4096);
  };
  EXPECT_EQ(load(0, 1.5), 1.5);
  EXPECT_EQ(load(1.25, 1.5), 1.25);
  EXPECT_EQ(load(1.25, 1), 1);
  EXPECT_EQ(load(0.0004, 1), 1.0 / 1024) << "a whole token";
}

// Mixtral, two of eight experts. The load of a rank is at most all copies of all e ranks. With one
// expert per rank it is at most every token once, 4 times the even share of a quarter.
TEST(RoutedLoad, IsAtMostWhatRoutingCanDo) {
  const auto load = [](int expert, double capacity = 0) {
    const LayerShard shard{.expert = expert, .capacity_factor = capacity, .load_imbalance = 100};
    return routed_load(mixtral_8x7b(), shard, 4096);
  };
  EXPECT_EQ(load(1), 1);
  EXPECT_EQ(load(2), 2);
  EXPECT_EQ(load(4), 4);
  EXPECT_EQ(load(8), 4);
  EXPECT_EQ(load(2, 8), 2);
}

// Handbook §4, MLA: every rank has the down projections in full and the up projections by columns.
// DeepSeek-V3, t = 8, n = 4096.
TEST(LayerOperators, OfLatentAttentionReplicateTheDownProjections) {
  const LayerShard shard{.tensor = 8, .sequence_parallel = true};
  const auto list = layer_operators(deepseek_v3(), modern(), shard, {});
  expect_gemm(only(list, OperatorKind::query_down), 4096, 7168, 1536);
  expect_gemm(only(list, OperatorKind::kv_down), 4096, 7168, 512 + 64);
  expect_gemm(only(list, OperatorKind::query_up), 4096, 1536, 16 * 192);
  expect_gemm(only(list, OperatorKind::kv_up), 4096, 512, 16 * (128 + 128));
  expect_gemm(only(list, OperatorKind::output_projection), 4096, 16 * 128, 7168);
  EXPECT_EQ(only(list, OperatorKind::kv_down).replicas, 8);
}

TEST(LayerOperators, OfLatentAttentionWithoutAQueryRankProjectTheQueryDirectly) {
  Transformer model = deepseek_v3();
  model.latent_attention->query_rank = 0;
  const auto list = layer_operators(model, modern(), {}, {});
  expect_gemm(only(list, OperatorKind::query_up), 4096, 7168, 128 * 192);
  for (const Operator& op : list) EXPECT_NE(op.kind, OperatorKind::query_down);
}

// The prototype's notes: softmax and dropout of unfused attention move 13 bytes per score forward
// and 19 backward.
TEST(Traffic, OfUnfusedAttentionIsThirteenAndNineteenBytesAScore) {
  const Operator core =
      only(layer_operators(gpt3_175b(), megatron_2022(), {}, {}), OperatorKind::attention_core);
  const double scores = 96.0 * 2048 * 2048;
  EXPECT_EQ(core.forward_traffic.value(), 13 * scores);
  EXPECT_EQ(core.backward_traffic.value(), 19 * scores);
}

// A norm passes over n·h elements of 2 bytes twice forward and three times backward; SwiGLU over
// n·f three and five times. Sequence parallelism divides the norms; only t divides SwiGLU.
TEST(Traffic, OfFusedOperatorsReadsAndWritesOnce) {
  const LayerShard shard{.tensor = 2, .sequence_parallel = true};
  const auto list = layer_operators(llama_8b(), modern(), shard, {});
  const double hidden = 4096.0 * 4096 / 2 * 2, ffn = 4096.0 * 14336 / 2 * 2;
  EXPECT_EQ(only(list, OperatorKind::mlp_norm).forward_traffic.value(), 2 * hidden);
  EXPECT_EQ(only(list, OperatorKind::mlp_norm).backward_traffic.value(), 3 * hidden);
  EXPECT_EQ(only(list, OperatorKind::mlp_residual).forward_traffic.value(), 3 * hidden);
  EXPECT_EQ(only(list, OperatorKind::mlp_activation).forward_traffic.value(), 3 * ffn);
  EXPECT_EQ(only(list, OperatorKind::mlp_activation).backward_traffic.value(), 5 * ffn);
  EXPECT_EQ(only(list, OperatorKind::mlp_up).forward_traffic.value(), 0);
}

// Vocabulary-parallel logits of 2·2048 tokens; the stack says the bytes.
TEST(Traffic, OfTheCrossEntropyFollowsTheStack) {
  Training training = megatron_2022();
  training.stack.cross_entropy_forward_bytes = 26;
  training.stack.cross_entropy_backward_bytes = 16;
  const auto list = head_operators(gpt3_175b(), training, {.tensor = 8, .micro_batch = 2});
  const double logits = 2 * 2048.0 * 51200 / 8;
  EXPECT_EQ(only(list, OperatorKind::cross_entropy).forward_traffic.value(), 26 * logits);
  EXPECT_EQ(only(list, OperatorKind::cross_entropy).backward_traffic.value(), 16 * logits);
}

// Kernels that PyTorch's autograd runs beside the fused minimum of GPT-3, in units of h per token:
// each bias reads its output's gradient (3, 1, 4 and 1), queries, keys and values are put together
// (2·3), and a norm's weights read its input and its output's gradient (2). A network without
// biases has no such sums.
TEST(Traffic, OfEagerGradientsIsCountedKernelByKernel) {
  Training training = modern(2048);
  const OperatorList fused = layer_operators(gpt3_175b(), training, {}, {});
  training.stack.eager_gradients = true;
  const OperatorList eager = layer_operators(gpt3_175b(), training, {}, {});
  const double hidden = 2048 * 12288 * 2.0;
  const auto more = [&](OperatorKind kind) {
    EXPECT_EQ(only(eager, kind).forward_traffic, only(fused, kind).forward_traffic);
    return (only(eager, kind).backward_traffic - only(fused, kind).backward_traffic) /
           Bytes(hidden);
  };
  EXPECT_EQ(more(OperatorKind::qkv_projection), 3 + 2 * 3);
  EXPECT_EQ(more(OperatorKind::output_projection), 1);
  EXPECT_EQ(more(OperatorKind::mlp_up), 4);
  EXPECT_EQ(more(OperatorKind::mlp_down), 1);
  EXPECT_EQ(more(OperatorKind::attention_norm), 2);
  EXPECT_EQ(more(OperatorKind::mlp_norm), 2);
  EXPECT_EQ(more(OperatorKind::mlp_activation), 0);
  Transformer llama = llama_8b();
  const auto traffic = [&](OperatorKind kind) {
    return only(layer_operators(llama, training, {}, {}), kind).backward_traffic.value();
  };
  const double columns = (32 + 2 * 8) * 128;
  EXPECT_EQ(traffic(OperatorKind::qkv_projection), 2 * 2 * 2048 * columns);
  llama.qkv_biases = true;  // as Qwen2: on this projection only
  EXPECT_EQ(traffic(OperatorKind::qkv_projection), 3 * 2 * 2048 * columns);
  EXPECT_EQ(traffic(OperatorKind::mlp_down), 0);
}

// fp8 casts the input of each layer GEMM forward, and the gradient of its output backward, at 6
// bytes per element. Head and router do not cast.
TEST(Traffic, OfCastsIsCarriedByTheLayerGemms) {
  Training training = modern();
  training.precision = *find_precision_recipe("fp8");
  const auto list = layer_operators(mixtral_8x7b(), training, {}, {.moe = true});
  const Operator qkv = only(list, OperatorKind::qkv_projection);
  EXPECT_EQ(qkv.forward_traffic.value(), 6 * 4096.0 * 4096);
  EXPECT_EQ(qkv.backward_traffic.value(), 6 * 4096.0 * 128 * 48);
  const Operator down = only(list, OperatorKind::expert_down);
  EXPECT_EQ(down.forward_traffic.value(), 6 * 4096.0 * 2 * 14336);
  EXPECT_EQ(only(head_operators(llama_8b(), training, {}), OperatorKind::output_head)
                .forward_traffic.value(),
            0);
}

// Per token a row of 2h bytes is read and 2h are written. Backward reads 2h, and reads and writes
// 4h of the main gradient. Each of t ranks looks up its own rows and writes all rows.
TEST(Traffic, OfTheEmbeddingIsARowAToken) {
  const Operator op = only(embedding_operators(llama_8b(), modern(), {}), OperatorKind::embedding);
  const double elements = 4096.0 * 4096;
  EXPECT_EQ(op.forward_traffic.value(), elements * 4);
  EXPECT_EQ(op.backward_traffic.value(), elements * 10);
  EXPECT_EQ(op.weights, 128256.0 * 4096);
  const Operator cut =
      only(embedding_operators(llama_8b(), modern(), {.tensor = 4}), OperatorKind::embedding);
  EXPECT_EQ(cut.forward_traffic.value(), elements * (2.0 / 4 + 2));
  EXPECT_EQ(cut.backward_traffic.value(), elements * (2 + 8.0 / 4));
}

// A residual with dropout: forward reads both, writes the sum and a mask of one byte; backward adds
// two gradients, then reads one and the mask and writes the branch's.
TEST(Traffic, OfDropoutIsAMaskForwardAndAPassBackward) {
  const auto list = layer_operators(gpt3_175b(), megatron_2022(), {}, {});
  const Operator op = only(list, OperatorKind::attention_residual);
  EXPECT_EQ(op.forward_traffic.value(), 2048.0 * 12288 * (6 + 1));
  EXPECT_EQ(op.backward_traffic.value(), 2048.0 * 12288 * (6 + 5));
}

// DeepSeek-V3: 64 elements of a query head are rotated in place, and the 192 of a key head are
// assembled; each element is read and written.
TEST(Traffic, OfLatentRotaryAssemblesTheKeys) {
  const auto list = layer_operators(deepseek_v3(), modern(), {}, {});
  EXPECT_EQ(only(list, OperatorKind::rotary).forward_traffic.value(),
            4096.0 * 128 * (64 + 192) * 2 * 2);
}

// The router's scores are read in 16 bits and their softmax is written in fp32.
TEST(Traffic, OfTheRouterIsItsSoftmax) {
  const auto list = layer_operators(mixtral_8x7b(), modern(), {}, {.moe = true});
  EXPECT_EQ(only(list, OperatorKind::router).forward_traffic.value(), 4096.0 * 8 * (2 + 4));
}

// A rank with one local expert receives its rows in order; with several it sorts them, once each
// way.
TEST(Traffic, OfThePermutationGrowsWithLocalExperts) {
  const auto traffic = [](int expert) {
    return only(layer_operators(mixtral_8x7b(), modern(), {.expert = expert}, {.moe = true}),
                OperatorKind::permutation)
        .forward_traffic.value();
  };
  const double token = 4096.0 * 4096 * 2;  // n·h elements of 2 bytes
  EXPECT_EQ(traffic(1), token * (2 + 2 * 2));
  EXPECT_EQ(traffic(8), token * (2 + 2 * 2));
  EXPECT_EQ(traffic(4), token * (2 + 2 * 2 + 4 * 2));
}

// Transformer Engine's ring attention: each of c steps reads a 16-bit partial output and reads and
// writes the fp32 sum, which is cast once. Backward adds 16-bit gradients of Q, K and V.
TEST(RingMerge, AddsUpTheStepsOfARing) {
  const LayerShard ring{.context = 4};
  const auto merge =
      only(layer_operators(llama_8b(), modern(), ring, {}), OperatorKind::ring_merge);
  const double queries = 4096.0 / 4 * 4096;
  const double keys_values = 4096.0 / 4 * 2 * 1024;
  EXPECT_EQ(merge.forward_traffic.value(), queries * (4 * (2 + 4 + 4) + 4 + 2));
  EXPECT_EQ(merge.backward_traffic.value(), 4 * (2 + 2 + 2) * (queries + keys_values));
}

TEST(RingMerge, IsNotThereWhereKeysAreGathered) {
  const LayerShard gathered{.context = 4, .context_algorithm = ContextAlgorithm::all_gather};
  for (const LayerShard& shard : {gathered, LayerShard{}}) {
    for (const Operator& op : layer_operators(llama_8b(), modern(), shard, {})) {
      EXPECT_NE(op.kind, OperatorKind::ring_merge);
    }
  }
}

// torch.utils.checkpoint stops once it has the last saved tensor, the down projection's input.
TEST(EarlyStop, LeavesOutTheLastGemmAndTheResidual) {
  for (const Operator& op : layer_operators(llama_8b(), modern(), {}, {})) {
    const bool last = op.kind == OperatorKind::mlp_down || op.kind == OperatorKind::mlp_residual;
    EXPECT_EQ(op.after_last_saved, last) << static_cast<int>(op.kind);
  }
}

// Handbook §4 and design §3: the vocabulary is padded for shapes and memory, but never in model
// FLOP.
TEST(OutputHead, PadsTheVocabulary) {
  Transformer model = gpt3_175b();
  model.vocabulary = 50257;
  const auto list = head_operators(model, megatron_2022(), {.tensor = 8});
  const Operator head = only(list, OperatorKind::output_head);
  EXPECT_EQ(padded_vocabulary(50257, 8), 50264);
  expect_gemm(head, 2048, 12288, 50264 / 8);
  EXPECT_NEAR(8 * head.forward.value() / head.replicas, 2.0 * 2048 * 12288 * 50257, 1);
}

TEST(LayerShard, IsThePlansCut) {
  Plan plan;
  plan.tensor_parallel = 4;
  plan.sequence_parallel = true;
  plan.context_parallel = 2;
  plan.context_parallel_algorithm = ContextAlgorithm::ulysses;
  plan.expert_parallel = 8;
  plan.micro_batch = 3;
  const LayerShard shard = layer_shard(plan);
  const auto core =
      only(layer_operators(llama_8b(), modern(), shard, {}), OperatorKind::attention_core);
  EXPECT_EQ(core.attention.heads, 32 / (4 * 2));
  EXPECT_EQ(core.attention.batch, 3);
  EXPECT_EQ(shard.expert, 8);
}

}  // namespace
}  // namespace trainyard
