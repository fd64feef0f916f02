#include "scenarios/huggingface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "scenarios/output.h"
#include "scenarios/scenario.h"
#include "tests/support/shared_data.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct KnownModel {
  std::string file;
  double parameters;  // handbook §2, exact
  double active;
};

class HuggingFaceConfigs : public ::testing::TestWithParam<KnownModel> {};

TEST_P(HuggingFaceConfigs, GiveTheExactParameterCounts) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto imported = read_huggingface(shared / "models" / "hf" / GetParam().file);
  ASSERT_TRUE(imported.has_value()) << imported.error().where << imported.error().message;
  EXPECT_EQ(parameter_count(imported->model, 4096), GetParam().parameters);
  EXPECT_EQ(active_parameter_count(imported->model, 4096), GetParam().active);
}

INSTANTIATE_TEST_SUITE_P(
    Handbook, HuggingFaceConfigs,
    ::testing::Values(KnownModel{"Meta-Llama-3.1-8B.json", 8'030'261'248, 8'030'261'248},
                      KnownModel{"Meta-Llama-3.1-70B.json", 70'553'706'496, 70'553'706'496},
                      KnownModel{"Meta-Llama-3.1-405B.json", 405'853'388'800, 405'853'388'800},
                      KnownModel{"Mixtral-8x7B-v0.1.json", 46'702'792'704, 12'879'925'248},
                      KnownModel{"Mixtral-8x22B-v0.1.json", 140'620'634'112, 39'152'031'744},
                      KnownModel{"DeepSeek-V3.json", 671'026'419'200, 37'552'297'472},
                      KnownModel{"Qwen3-32B.json", 32'762'123'264, 32'762'123'264},
                      KnownModel{"Qwen3-235B-A22B.json", 235'093'634'560, 22'190'763'520},
                      KnownModel{"gpt-oss-20b.json", 20'914'757'184, 4'187'440'704}),
    [](const auto& tested) {
      std::string name = tested.param.file;
      std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
      return name;
    });

class HuggingFace : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("trainyard_hf." + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Expected<ImportedModel> imported(const std::string& config) const {
    std::ofstream(folder_ / "config.json") << config;
    return read_huggingface(folder_ / "config.json");
  }

  fs::path folder_;
};

// GPT-2 small has 124,439,808 parameters (Hugging Face model card; 1,024 positions).
TEST_F(HuggingFace, ReadsGpt2ByItsOwnKeys) {
  const auto gpt2 = imported(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
                                 "n_positions": 1024, "n_inner": null, "vocab_size": 50257})");
  ASSERT_TRUE(gpt2.has_value());
  EXPECT_EQ(parameter_count(gpt2->model, 1024), 124'439'808);
}

// Qwen2-7B: 7,615,616,512 parameters (safetensors index of Qwen/Qwen2-7B): biases on QKV only.
TEST_F(HuggingFace, KnowsTheBiasesThatQwen2DoesNotWriteDown) {
  const auto qwen = imported(R"({"model_type": "qwen2", "num_hidden_layers": 28,
      "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
      "num_key_value_heads": 4, "vocab_size": 152064, "use_sliding_window": false,
      "sliding_window": 131072, "tie_word_embeddings": false})");
  ASSERT_TRUE(qwen.has_value());
  EXPECT_EQ(parameter_count(qwen->model, 4096), 7'615'616'512);
  EXPECT_EQ(qwen->model.sliding_window, 0);
}

// Gemma-2-2B ties its embeddings without saying so, and every second layer attends in full.
TEST_F(HuggingFace, KnowsWhatGemma2LeavesToItsCode) {
  const auto gemma = imported(R"({"model_type": "gemma2", "num_hidden_layers": 26,
      "hidden_size": 2304, "intermediate_size": 9216, "num_attention_heads": 8,
      "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "sliding_window": 4096})");
  ASSERT_TRUE(gemma.has_value());
  EXPECT_TRUE(gemma->model.tied_embeddings);
  EXPECT_EQ(gemma->model.sliding_window, 4096);
  EXPECT_EQ(gemma->model.full_attention_every, 2);
}

TEST_F(HuggingFace, TakesTheTextTowerOfAVisionLanguageModelAndSaysSo) {
  const auto model = imported(R"({"model_type": "llava", "vision_config": {"hidden_size": 1024},
      "text_config": {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
      "intermediate_size": 11008, "num_attention_heads": 32, "vocab_size": 32064}})");
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->model.layers, 32);
  EXPECT_THAT(model->assumptions, ::testing::ElementsAre(HasSubstr("text tower")));
}

TEST_F(HuggingFace, SaysWhatItAssumesOfAModelTypeItDoesNotKnow) {
  const auto model = imported(R"({"model_type": "brandnew", "num_hidden_layers": 2,
      "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100})");
  ASSERT_TRUE(model.has_value());
  EXPECT_THAT(model->assumptions,
              ::testing::ElementsAre(HasSubstr("\"brandnew\" is not known"),
                                     HasSubstr("intermediate_size is not said: 4 times")));
}

// Squared ReLU has no gate (So et al. 2021, Primer); LayerNorm's epsilon has a name of its own.
TEST_F(HuggingFace, TakesHintsOfAModelTypeItDoesNotKnow) {
  const std::string sizes =
      R"("num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100)";
  const auto plain = imported(R"({"model_type": "brandnew", "hidden_act": "relu2",
                                  "layer_norm_eps": 1e-5, )" +
                              sizes + "}");
  ASSERT_TRUE(plain.has_value());
  EXPECT_FALSE(plain->model.gated_mlp);
  EXPECT_EQ(plain->model.norm, Norm::layer_norm);
  const auto gated = imported(R"({"model_type": "brandnew", "hidden_act": "silu",
                                  "rms_norm_eps": 1e-5, )" +
                              sizes + "}");
  ASSERT_TRUE(gated.has_value());
  EXPECT_TRUE(gated->model.gated_mlp);
  EXPECT_EQ(gated->model.norm, Norm::rms_norm);
}

TEST_F(HuggingFace, AssumesNothingOfALlama) {
  const auto model = imported(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
      "intermediate_size": 256, "num_attention_heads": 4, "vocab_size": 100})");
  ASSERT_TRUE(model.has_value());
  EXPECT_THAT(model->assumptions, IsEmpty());
}

TEST_F(HuggingFace, RefusesWhatIsNotADecoder) {
  EXPECT_FALSE(imported(R"({"model_type": "t5", "is_encoder_decoder": true})").has_value());
  EXPECT_FALSE(imported(R"({"model_type": "mamba2", "num_hidden_layers": 2})").has_value());
}

// What import writes reads back to a network of the same parameters.
TEST_F(HuggingFace, ImportedModelIsADocumentOfTheSameParameters) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  for (const char* file : {"DeepSeek-V3.json", "gpt-oss-20b.json", "Qwen3-235B-A22B.json"}) {
    const auto imported_model = read_huggingface(shared / "models" / "hf" / file).value();
    std::ofstream(folder_ / "model.json") << model_document(imported_model.model, file);
    std::ofstream(folder_ / "scenario.json")
        << R"({"trainyard": "scenario/1", "model": "model.json",
               "cluster": {"node": "dgx-h100-80gb", "nodes": 1},
               "training": {"global_batch": 8, "sequence_length": 4096}})";
    const auto scenario = read_scenario(folder_ / "scenario.json");
    ASSERT_TRUE(scenario.has_value()) << scenario.error().where << scenario.error().message;
    EXPECT_EQ(parameter_count(scenario->job.model, 4096),
              parameter_count(imported_model.model, 4096));
    EXPECT_EQ(scenario->job.model.full_attention_every, imported_model.model.full_attention_every);
  }
}

// Sums by hand: 40 · (4 · 6144² …) = the 131,596,523,520 of databricks/dbrx-base (132 B).
TEST(HuggingFaceText, ReadsTheExpertsOfDbrxFromTheirPartOfTheConfig) {
  const auto read = parse_huggingface(R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48,
      "n_layers": 40, "vocab_size": 100352, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
      "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})",
                                      "dbrx");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->model.kv_heads, 8);
  EXPECT_EQ(read->model.experts_per_token, 4);
  EXPECT_NEAR(static_cast<double>(parameter_count(read->model, 8192)), 131'596'523'520.0, 2e6);
}

// CohereForAI/c4ai-command-r-v01: 34,980,831,232 parameters; its block has one norm, ours two.
TEST(HuggingFaceText, TiesTheEmbeddingsOfCommandR) {
  const auto read = parse_huggingface(R"({"model_type": "cohere", "hidden_size": 8192,
      "intermediate_size": 22528, "num_hidden_layers": 40, "num_attention_heads": 64,
      "num_key_value_heads": 64, "vocab_size": 256000})",
                                      "command-r");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_NEAR(static_cast<double>(parameter_count(read->model, 8192)), 34'980'831'232.0, 2e6);
}

// As bigscience/bloom spells its width.
TEST(HuggingFaceText, ReadsBloomAsItWasPublished) {
  const auto read = parse_huggingface(R"({"model_type": "bloom", "n_embed": 14336, "n_layer": 70,
      "num_attention_heads": 112, "vocab_size": 250880})",
                                      "bloom");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_NEAR(static_cast<double>(parameter_count(read->model, 2048)), 176'247'271'424.0, 2e6);
}

TEST(HuggingFaceText, RefusesLayersThatAreNoSoftmaxAttention) {
  const auto read = parse_huggingface(R"({"model_type": "minimax", "num_hidden_layers": 2,
      "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
      "layer_types": ["full_attention", "linear_attention"]})",
                                      "minimax");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().where, "minimax: /layer_types/1");
  EXPECT_THAT(read.error().message, ::testing::HasSubstr("found \"linear_attention\""));
}

}  // namespace
}  // namespace trainyard
