#include "model/workload/flop.h"

#include <gtest/gtest.h>

#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

// Narayanan et al. 2021, §5.1: F = 72·B·s·L·h²·(1 + s/(6h) + V/(12Lh)).
double closed_form(double batch, double s, double layers, double h, double vocabulary) {
  return 72 * batch * s * layers * h * h * (1 + s / (6 * h) + vocabulary / (12 * layers * h));
}

TEST(ModelFlop, OfGpt3IsTheClosedForm) {
  const double expected = closed_form(1536, 2048, 96, 12288, 51200);
  const double flop = model_flop(gpt3_175b(), megatron_2022()).value();
  EXPECT_NEAR(flop / expected, 1, 1e-9);
  EXPECT_NEAR(flop, 3.386e18, 0.0005e18);  // handbook §3
}

// Full recomputation repeats the layers' forward: 96·B·s·L·h²·(1 + s/(6h) + V/(16Lh)), 4.511e18.
TEST(HardwareFlop, WithFullRecomputationRepeatsTheLayers) {
  const SequenceFlop forward = sequence_forward_flop(gpt3_175b(), megatron_2022());
  const double flop = 1536 * (4 * forward.layers + 3 * forward.head).value();
  const double h = 12288, s = 2048, layers = 96, batch = 1536;
  const double expected =
      96 * batch * s * layers * h * h * (1 + s / (6 * h) + 51200 / (16 * layers * h));
  EXPECT_NEAR(flop / expected, 1, 1e-9);
  EXPECT_NEAR(flop, 4.511e18, 0.0005e18);
}

// Selective recomputation repeats the core: 72·B·s·L·h²·(1 + 2s/(9h) + V/(12Lh)) (handbook §3).
TEST(HardwareFlop, WithSelectiveRecomputationRepeatsTheCore) {
  const SequenceFlop forward = sequence_forward_flop(gpt3_175b(), megatron_2022());
  const double flop = (3 * (forward.layers + forward.head) + forward.attention_core).value();
  const double h = 12288, s = 2048, layers = 96;
  const double expected =
      72 * s * layers * h * h * (1 + 2 * s / (9 * h) + 51200 / (12 * layers * h));
  EXPECT_NEAR(flop / expected, 1, 1e-9);
}

TEST(ModelFlop, CausalCountHalvesTheCoreOnly) {
  const auto full = sequence_forward_flop(llama_8b(), modern());
  const auto causal = sequence_forward_flop(llama_8b(), modern(), AttentionCount::causal);
  EXPECT_DOUBLE_EQ(causal.attention_core.value(), full.attention_core.value() / 2);
  EXPECT_DOUBLE_EQ((full.layers - causal.layers).value(), causal.attention_core.value());
  EXPECT_EQ(causal.head, full.head);
}

// gpt-oss at s = 4096: 12 layers see 128 keys, 12 see 4096; 2·s·keys·a·(64 + 64) FLOP each. Causal,
// a row sees 2048 keys on average, and under a window 128·(4096 − 64)/4096 = 126.
TEST(ModelFlop, SlidingLayersCountTheirWindow) {
  const double a_key = 2.0 * 4096 * 64 * 128;
  const auto full = sequence_forward_flop(gpt_oss_20b(), modern(4096));
  EXPECT_DOUBLE_EQ(full.attention_core.value(), 12 * a_key * (128 + 4096));
  const auto causal = sequence_forward_flop(gpt_oss_20b(), modern(4096), AttentionCount::causal);
  EXPECT_DOUBLE_EQ(causal.attention_core.value(), 12 * a_key * (126 + 2048));
}

// Rows up to the window see a triangle. So a window of half the sequence keeps 1/2 − 1/8 of the
// scores, three quarters of the causal half; a window that is one key short of the sequence keeps
// all of them.
TEST(ModelFlop, CausalCountOfAWindowGoesOverIntoThatOfTheWholeSequence) {
  const auto core = [](int window) {
    Transformer windowed = llama_8b();
    windowed.sliding_window = window;
    return sequence_forward_flop(windowed, modern(4096), AttentionCount::causal).attention_core;
  };
  EXPECT_DOUBLE_EQ(core(2048) / core(4096), 0.75);
  EXPECT_NEAR(core(4095) / core(4096), 1, 1e-6);
}

// A window as long as the sequence is full attention.
TEST(ModelFlop, WindowBeyondTheSequenceIsFullAttention) {
  Transformer windowed = llama_8b();
  windowed.sliding_window = 4096;
  for (const auto count : {AttentionCount::full, AttentionCount::causal}) {
    EXPECT_EQ(model_flop(windowed, modern(4096), count),
              model_flop(llama_8b(), modern(4096), count));
  }
}

// Each token costs a multiplication and an addition per matrix element and pass, so 6 FLOP per
// parameter (norms, embedding and correction bias cost none), plus the core, 6·2·s·a·(192 + 128)
// per layer.
TEST(ModelFlop, OfDeepseekAreSixPerActiveParameter) {
  const Transformer model = deepseek_v3();
  const Training training = modern(4096);
  const double vectors = 61 * (2 * 7168 + 1536 + 512) + 7168 + 58 * 256;
  const double matrices = active_parameter_count(model, 4096) - vectors - 129280.0 * 7168;
  const double tokens = 8.0 * 4096;
  const double core = 61 * 3 * tokens * 2 * 4096 * 128 * (192 + 128);
  const double expected = 6 * tokens * matrices + core;
  EXPECT_NEAR(model_flop(model, training).value() / expected, 1, 1e-9);
}

}  // namespace
}  // namespace trainyard
