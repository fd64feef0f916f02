// Releases of a stack: which entries hold for a month and a precision recipe.
#include "model/workload/stack.h"

#include <gtest/gtest.h>

#include "model/workload/operators.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

Stack with_releases() {
  Stack stack;
  stack.host_moe_layer_forward = Seconds(4e-3);
  stack.releases = {{.since = "25.09", .before = "25.11", .moe_graphs = true},
                    {.since = "25.11", .gradient_bytes = 2},
                    {.since = "26.06", .precision = "mxfp8", .expert_overlap = true},
                    {.before = "25.09",
                     .generation = "blackwell",
                     .latent_attention = true,
                     .flash_attention = false}};
  return stack;
}

TEST(StackRelease, BeginsWithItsFirstMonthAndEndsBeforeItsLast) {
  const auto host = [](const char* release) {
    return at_release(with_releases(), {.release = release, .precision = "bf16"})
        .host_moe_layer_forward;
  };
  EXPECT_EQ(host("25.08"), Seconds(4e-3));
  EXPECT_EQ(host("25.09"), Seconds(0));
  EXPECT_EQ(host("25.10.01 NeMo Container"), Seconds(0));
  EXPECT_EQ(host("25.11"), Seconds(4e-3));
}

TEST(StackRelease, WithoutAnEndHoldsForAllLaterOnes) {
  EXPECT_EQ(at_release(with_releases(), {.release = "25.10", .precision = "bf16"}).gradient_bytes,
            4);
  EXPECT_EQ(at_release(with_releases(), {.release = "26.01", .precision = "bf16"}).gradient_bytes,
            2);
}

// A compiled loss reads 16-bit logits twice; backward reads them and writes their gradient.
TEST(StackRelease, ChangesTheBytesOfALogit) {
  Stack stack;
  stack.releases = {{.since = "25.04",
                     .cross_entropy_forward_bytes = 4,
                     .cross_entropy_backward_bytes = 4,
                     .saved_logit_bytes = 4}};
  const Stack compiled = at_release(stack, {.release = "25.06", .precision = "bf16"});
  EXPECT_EQ(compiled.cross_entropy_forward_bytes, 4);
  EXPECT_EQ(compiled.cross_entropy_backward_bytes, 4);
  EXPECT_EQ(compiled.saved_logit_bytes, 4);
  EXPECT_EQ(at_release(stack, {.release = "25.03", .precision = "bf16"}).saved_logit_bytes, 6);
}

TEST(StackRelease, OfOnePrecisionHoldsForNoOther) {
  EXPECT_TRUE(at_release(with_releases(), {.release = "26.08", .precision = "mxfp8"})
                  .overlap.expert_parallel);
  EXPECT_FALSE(at_release(with_releases(), {.release = "26.08", .precision = "fp8"})
                   .overlap.expert_parallel);
  EXPECT_FALSE(at_release(with_releases(), {.release = "26.05", .precision = "mxfp8"})
                   .overlap.expert_parallel);
}

TEST(StackRelease, OfADeviceAndAnAttentionHoldsWhereBothAre) {
  const auto fused = [](const char* release, const char* generation, bool latent) {
    return at_release(with_releases(), {.release = release,
                                        .precision = "bf16",
                                        .generation = generation,
                                        .latent_attention = latent})
        .flash_attention;
  };
  EXPECT_FALSE(fused("25.07", "blackwell", true));
  EXPECT_TRUE(fused("25.07", "hopper", true));
  EXPECT_TRUE(fused("25.07", "blackwell", false));
  EXPECT_TRUE(fused("25.09", "blackwell", true));
}

TEST(StackRelease, ThatIsNoMonthChangesNothing) {
  for (const char* release : {"", "main", "v2.3", "2.4.0", "2.08", "25.13", "25.8", "25.081",
                              "2025.08", "2025.12", "25"}) {
    const Stack stack = at_release(with_releases(), {.release = release,
                                                     .precision = "mxfp8",
                                                     .generation = "blackwell",
                                                     .latent_attention = true});
    EXPECT_TRUE(stack.flash_attention) << release;  // an entry without its first month
    EXPECT_EQ(stack.gradient_bytes, 4) << release;
    EXPECT_EQ(stack.host_moe_layer_forward, Seconds(4e-3)) << release;
  }
}

Operator of_kind(const Training& training, const LayerShard& shard, OperatorKind kind,
                 LayerKind layer) {
  const Transformer model = layer.moe ? mixtral_8x7b() : llama_8b();
  for (const Operator& op : layer_operators(model, training, shard, layer)) {
    if (op.kind == kind) return op;
  }
  ADD_FAILURE() << "no such operator";
  return {};
}

Training in_fp8() {
  Training training = modern();
  training.precision = *find_precision_recipe("fp8");
  return training;
}

// Current scaling reads 16 bits for the magnitude, 16 bits for the cast and writes two bytes.
TEST(DelayedScaling, SavesTheReadThatFindsTheScale) {
  Training training = in_fp8();
  const auto cast = [&] {
    return of_kind(training, {}, OperatorKind::mlp_up, {}).forward_traffic.value();
  };
  const double current = cast();
  training.stack.delayed_scaling = true;
  EXPECT_DOUBLE_EQ(cast() / current, 4.0 / 6.0);
}

TEST(FusedActivationCasts, LeaveTheMlpsOwnCastsToItsActivation) {
  Training training = in_fp8();
  training.stack.fused_activation_casts = true;
  EXPECT_EQ(of_kind(training, {}, OperatorKind::mlp_down, {}).forward_traffic, Bytes(0));
  EXPECT_EQ(of_kind(training, {}, OperatorKind::mlp_up, {}).backward_traffic, Bytes(0));
  EXPECT_GT(of_kind(training, {}, OperatorKind::mlp_up, {}).forward_traffic, Bytes(0));
}

// Gate and up, 2·14,336 elements a token: one byte each instead of two.
TEST(QuantisedActivationInput, HalvesWhatTheActivationKeeps) {
  Training training = in_fp8();
  const auto kept = [&] { return of_kind(training, {}, OperatorKind::mlp_activation, {}).saved; };
  EXPECT_EQ(kept(), Bytes(4096.0 * 2 * 14336 * 2));
  training.stack.quantised_activation_input = true;
  EXPECT_EQ(kept(), Bytes(4096.0 * 2 * 14336));
  training.precision = *find_precision_recipe("bf16");
  EXPECT_EQ(kept(), Bytes(4096.0 * 2 * 14336 * 2));
}

// Two copies a token of 4,096 elements in 16 bits; each is read and written before the GEMMs and
// after them, in each direction.
TEST(ExpertPadding, CopiesEveryRowTwiceInLowPrecisionOnly) {
  Training training = in_fp8();
  const auto traffic = [&] {
    return of_kind(training, {}, OperatorKind::permutation, {.moe = true}).forward_traffic.value();
  };
  const double direct = traffic();
  training.stack.expert_padding = true;
  EXPECT_DOUBLE_EQ(traffic() - direct, 4096.0 * 2 * 4096 * 2 * 4);
  training.precision = *find_precision_recipe("bf16");
  EXPECT_DOUBLE_EQ(traffic(), direct);
}

TEST(FusedExpertCasts, TakeNoTrafficOfTheirOwn) {
  Training training = in_fp8();
  const auto traffic = [&](OperatorKind kind) {
    const Operator op = of_kind(training, {}, kind, {.moe = true});
    return op.forward_traffic + op.backward_traffic;
  };
  EXPECT_GT(traffic(OperatorKind::expert_up), Bytes(0));
  training.stack.fused_expert_casts = true;
  EXPECT_EQ(traffic(OperatorKind::expert_up), Bytes(0));
  EXPECT_EQ(traffic(OperatorKind::expert_down), Bytes(0));
  EXPECT_GT(traffic(OperatorKind::qkv_projection), Bytes(0));
}

// Two copies a token of 4,096 elements: 28 bytes each forward and 40 backward, the tensors that
// Megatron-Core's TEGroupedMLP._apply_bias and PyTorch's gradients of it read and write.
TEST(ExpertBiasApart, IsTrafficBehindTheExpertsOfANetworkWithBiases) {
  Training training = modern();
  const auto activation = [&](bool biases, bool apart) {
    Transformer model = mixtral_8x7b();
    model.biases = biases;
    training.stack.expert_bias_apart = apart;
    const OperatorList list = layer_operators(model, training, {}, {.moe = true});
    return *std::ranges::find(list, OperatorKind::expert_activation, &Operator::kind);
  };
  const Operator without = activation(true, false);
  EXPECT_EQ(activation(false, true).forward_traffic, without.forward_traffic);
  const Operator with = activation(true, true);
  EXPECT_EQ(with.forward_traffic - without.forward_traffic, Bytes(4096.0 * 2 * 4096 * 28));
  EXPECT_EQ(with.backward_traffic - without.backward_traffic, Bytes(4096.0 * 2 * 4096 * 40));
}

}  // namespace
}  // namespace trainyard
