// Which layers of a Hugging Face network have experts and which attend with a window. Expected
// values are derived by hand from the code that is named beside them, of transformers 4.57
// (models/<type>/).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "scenarios/huggingface.h"

namespace trainyard {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The network of a config with valid sizes and `more` keys.
ImportedModel network_of(int layers, const std::string& more) {
  const auto read = parse_huggingface(
      R"({"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
          "vocab_size": 100, "num_hidden_layers": )" +
          std::to_string(layers) + ", " + more + "}",
      "config");
  EXPECT_TRUE(read.has_value()) << read.error().where << ": " << read.error().message;
  return read.value_or(ImportedModel{});
}

// configuration_llama4.py takes `moe_layers` unless it is None (an empty list counts), else
// range(step - 1, layers, step). For a step of 0, vLLM's llama4.py makes layers without experts.
// modeling_llama4.py gives layers without experts an MLP of intermediate_size_mlp, by default
// 16384.
TEST(HuggingFaceLayers, OfLlama4HaveNoExpertsWhereItsListIsEmptyOrItsStepNought) {
  const std::string llama4 = R"("model_type": "llama4_text", "num_local_experts": 16, )";
  for (const char* dense : {R"("moe_layers": [], "interleave_moe_layer_step": 1)",
                            R"("interleave_moe_layer_step": 0)"}) {
    const Transformer model =
        network_of(4, llama4 + R"("intermediate_size_mlp": 256, )" + dense).model;
    EXPECT_EQ(model.experts, 0) << dense;
    EXPECT_EQ(model.shared_experts, 0) << dense;
    EXPECT_EQ(model.ffn_size, 256) << dense;
  }
  const Transformer listed =
      network_of(4, llama4 + R"("moe_layers": [1, 3], "interleave_moe_layer_step": 0)").model;
  EXPECT_EQ(listed.experts, 16);
  EXPECT_EQ(listed.moe_every, 2);
  EXPECT_EQ(listed.expert_ffn_size, 128);
  EXPECT_EQ(listed.ffn_size, 16384);
}

// vLLM's arctic.py: experts where (layer + 1) % moe_layer_frequency is 0.
TEST(HuggingFaceLayers, OfArcticHaveExpertsFromTheSecondOnWhereItsFrequencyIsTwo) {
  const Transformer model =
      network_of(8, R"("model_type": "arctic", "num_local_experts": 4, "num_experts_per_tok": 2,
                       "moe_layer_frequency": 2)")
          .model;
  EXPECT_FALSE(layer_kind(model, 0).moe);
  EXPECT_TRUE(layer_kind(model, 1).moe);
  EXPECT_FALSE(layer_kind(model, 2).moe);
}

// From the forward() of the decoder layers in modeling_<type>.py. GPTNeoXLayer and
// StableLmDecoderLayer read use_parallel_residual (defaults true and false). FalconDecoderLayer
// adds attention and MLP with a new decoder or with parallel_attn (default true).
TEST(HuggingFaceLayers, SayWhereAttentionAndMlpAreSideBySide) {
  const auto side_by_side = [](const std::string& more) {
    const auto& notes = network_of(4, "\"model_type\": " + more).assumptions;
    return std::ranges::any_of(notes, [](const std::string& note) {
      return note.starts_with("attention and MLP, side by side in the network, are planned one");
    });
  };
  for (const char* more :
       {R"("gptj")", R"("codegen")", R"("phi")", R"("cohere")", R"("cohere2")", R"("gpt_neox")",
        R"("gpt_neox", "use_parallel_residual": true)",
        R"("stablelm", "use_parallel_residual": true)", R"("falcon")", R"("RefinedWeb")",
        R"("falcon", "new_decoder_architecture": true, "parallel_attn": false)"}) {
    EXPECT_TRUE(side_by_side(more)) << more;
  }
  for (const char* more :
       {R"("gpt_neox", "use_parallel_residual": false)", R"("stablelm")",
        R"("falcon", "parallel_attn": false)", R"("llama")", R"("gpt2")", R"("phi3")"}) {
    EXPECT_FALSE(side_by_side(more)) << more;
  }
}

// `layer_types` says that a layer has attention, but not whose keys it reads or what its embeddings
// are.
TEST(HuggingFaceLayers, NamedByTheirTypesAreStillRefusedForWhatTheTypesDoNotSay) {
  const std::string sizes =
      R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 100,
          "num_attention_heads": 4, "layer_types": ["full_attention", "full_attention"], )";
  for (const auto& [key, means] : {std::pair("num_kv_shared_layers", "layers share"),
                                   std::pair("hidden_size_per_layer_input", "each layer"),
                                   std::pair("share_q_dim", "narrower projection")}) {
    const auto read = parse_huggingface(sizes + "\"" + key + "\": 2}", "config");
    ASSERT_FALSE(read.has_value()) << key;
    EXPECT_THAT(read.error().message, HasSubstr(means));
  }
  EXPECT_TRUE(parse_huggingface(sizes + R"("mamba_d_state": 16})", "config").has_value());
}

// modeling_llama.py and configuration_llama.py have no sliding_window; those of Mistral and Mixtral
// have.
TEST(HuggingFaceLayers, HaveAWindowOnlyWhereTheCodeOfTheFamilyHasOne) {
  const std::string window = R"(", "sliding_window": 4096)";
  const auto of = [&](const std::string& type) {
    return network_of(4, R"("model_type": ")" + type + window);
  };
  const ImportedModel llama = of("llama");
  EXPECT_EQ(llama.model.sliding_window, 0);
  EXPECT_THAT(
      llama.assumptions,
      ::testing::ElementsAre("a window of 4096 is ignored: the code of \"llama\" has no windows"));
  EXPECT_THAT(network_of(4, R"("model_type": "llama", "sliding_window": null)").assumptions,
              IsEmpty());
  EXPECT_EQ(of("granite").model.sliding_window, 0);
  for (const char* type : {"mistral", "ministral3", "starcoder2", "phi3", "phimoe", "brandnew"}) {
    EXPECT_EQ(of(type).model.sliding_window, 4096) << type;
  }
}

// The key layer_types: "sliding_attention" for L, "full_attention" for G.
std::string layer_types(const std::string& letters) {
  std::string types;
  for (const char letter : letters) {
    types += (types.empty() ? "\"" : ", \"") +
             std::string(letter == 'G' ? "full_attention" : "sliding_attention") + "\"";
  }
  return "\"layer_types\": [" + types + "]";
}

std::string letters_of(const Transformer& model) {
  std::string letters;
  for (int layer = 0; layer < model.layers; ++layer) {
    letters += layer_kind(model, layer).sliding ? 'L' : 'G';
  }
  return letters;
}

// configuration_qwen2.py: layers i >= max_window_layers have sliding_attention.
TEST(HuggingFaceLayers, OfQwen2AttendInFullUpToTheFirstWindow) {
  for (const auto& [layers, full] : {std::pair(28, 21), std::pair(60, 40), std::pair(62, 31)}) {
    const ImportedModel qwen =
        network_of(layers, R"("model_type": "qwen2", "use_sliding_window": true,
                              "sliding_window": 4096, "max_window_layers": )" +
                               std::to_string(full));
    EXPECT_EQ(letters_of(qwen.model),
              std::string(static_cast<std::size_t>(full), 'G') +
                  std::string(static_cast<std::size_t>(layers - full), 'L'));
    EXPECT_THAT(qwen.assumptions, IsEmpty());
  }
}

// configuration_llama4.py: "chunked_attention" where no_rope_layers has 1. If that list is empty,
// it has 0 for each no_rope_layer_interval-th layer, by default each fourth.
TEST(HuggingFaceLayers, OfLlama4AttendInFullWhereTheyHaveNoRotaryPositions) {
  const auto letters = [](const std::string& more) {
    const std::string llama4 = R"("model_type": "llama4_text", "moe_layers": [],
                                  "attention_chunk_size": 8)";
    return letters_of(network_of(8, llama4 + more).model);
  };
  EXPECT_EQ(letters(R"(, "no_rope_layers": [1, 0, 1, 0, 1, 0, 1, 0])"), "LGLGLGLG");
  EXPECT_EQ(letters(R"(, "no_rope_layers": [], "no_rope_layer_interval": 2)"), "LGLGLGLG");
  EXPECT_EQ(letters(R"(, "no_rope_layers": [])"), "LLLGLLLG");
}

// configuration_cwm.py (transformers 5.24): layers with i % 4 == 0 attend in full.
// configuration_gemma2.py has no use_sliding_window, configuration_qwen3.py has.
TEST(HuggingFaceLayers, HaveTheWindowsOfTheirClass) {
  const std::string window = R"("sliding_window": 8, "use_sliding_window": )";
  EXPECT_EQ(letters_of(network_of(8, R"("model_type": "cwm")").model), "GLLLGLLL");
  EXPECT_EQ(letters_of(network_of(4, R"("model_type": "gemma2", )" + window + "false").model),
            "LGLG");
  EXPECT_EQ(letters_of(network_of(4, R"("model_type": "qwen3", )" + window + "false").model),
            "GGGG");
}

// A pattern of leading layers and a period is planned as it is. For any other pattern, the same
// number of layers attends in full.
TEST(HuggingFaceLayers, AttendInFullAsManyAsTheirTypesSay) {
  const auto olmo = [](const std::string& letters) {
    return network_of(static_cast<int>(letters.size()),
                      R"("model_type": "olmo3", "sliding_window": 8, )" + layer_types(letters));
  };
  for (const char* letters :
       {"LLLLLG", "LGLGLGL", "LLGLLGLL", "GGLGLGLG", "GLLLLLL", "GGGLLLGL", "GGGGGGL", "LLLL"}) {
    const ImportedModel model = olmo(letters);
    EXPECT_EQ(letters_of(model.model), letters);
    EXPECT_THAT(model.assumptions, ::testing::Each(::testing::Not(HasSubstr("each n-th"))));
  }
  const std::string scattered = "LLGLGLLLGGLLGLLGLGLGLGLLLGLGLGGLLGLLGLGLLLGLGLLGLLLGLGLLGLLLGG";
  const std::string mostly = "GGLGGLGGGLGGGGL";
  for (const std::string& letters :
       {scattered, mostly, std::string("GGLLLLLLL"), std::string("GLGLGL"), std::string("GLLG")}) {
    const Transformer model = olmo(letters).model;
    EXPECT_EQ(std::ranges::count(letters_of(model), 'G'), std::ranges::count(letters, 'G'))
        << letters;
  }
  // Each third of 62 layers is 20, of which one is among the first 5; with these 5 that makes 24.
  EXPECT_THAT(
      olmo(scattered).assumptions,
      ::testing::Contains("24 of 62 layers attend in full, not each n-th: planned as the first 5 "
                          "and then one in 3"));
}

}  // namespace
}  // namespace trainyard
