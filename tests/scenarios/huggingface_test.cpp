#include "scenarios/huggingface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "scenarios/huggingface/architectures.h"
#include "scenarios/scenario.h"
#include "scenarios/write/model.h"
#include "tests/scenarios/uncounted_parameters.h"
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

// Qwen2-7B has 7,615,616,512 parameters (safetensors index of Qwen/Qwen2-7B), with biases only on
// QKV.
TEST_F(HuggingFace, KnowsTheBiasesThatQwen2DoesNotWriteDown) {
  const auto qwen = imported(R"({"model_type": "qwen2", "num_hidden_layers": 28,
      "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
      "num_key_value_heads": 4, "vocab_size": 152064, "use_sliding_window": false,
      "sliding_window": 131072, "tie_word_embeddings": false})");
  ASSERT_TRUE(qwen.has_value());
  EXPECT_EQ(parameter_count(qwen->model, 4096), 7'615'616'512);
  EXPECT_EQ(qwen->model.sliding_window, 0);
}

// Gemma-2-2B ties its embeddings and has full attention in every second layer, neither of which the
// config says.
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

// Squared ReLU has no gate (So et al. 2021, Primer); LayerNorm's epsilon has its own key.
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
  // GELU with LayerNorm is GPT-2's MLP, GELU with RMSNorm is Gemma's; "gegelu" has a gate in its
  // name.
  const auto is_gated = [&](const std::string& more) {
    return imported(R"({"model_type": "brandnew", )" + more + ", " + sizes + "}")
        .value()
        .model.gated_mlp;
  };
  EXPECT_FALSE(is_gated(R"("activation_function": "gelu_new", "layer_norm_epsilon": 1e-5)"));
  EXPECT_TRUE(is_gated(R"("hidden_act": "gelu_pytorch_tanh", "rms_norm_eps": 1e-6)"));
  EXPECT_TRUE(is_gated(R"("hidden_act": "gegelu", "layer_norm_epsilon": 1e-5)"));
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

// The document that import writes reads back to a network with the same parameters.
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

// The sum by hand, 40 · (4 · 6144² …), equals the 131,596,523,520 of databricks/dbrx-base (132 B).
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

// MultiQueryAttention of MosaicML's llm-foundry (layers/attention.py) has one head of keys and
// values whatever kv_n_heads says; GroupedQueryAttention reads it.
TEST(HuggingFaceText, ReadsTheHeadsOfKeysFromTheKindOfAttentionOfMpt) {
  const auto kv_heads = [](const std::string& attention) {
    return parse_huggingface(R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32,
        "n_layers": 32, "vocab_size": 50432, "attn_config": {)" +
                                 attention + "}}",
                             "mpt")
        .value()
        .model.kv_heads;
  };
  EXPECT_EQ(kv_heads(R"("attn_type": "multiquery_attention")"), 1);
  EXPECT_EQ(kv_heads(R"("attn_type": "grouped_query_attention", "kv_n_heads": 8)"), 8);
  EXPECT_EQ(kv_heads(R"("attn_type": "multihead_attention")"), 32);
  EXPECT_TRUE(parse_huggingface(R"({"model_type": "mpt", "d_model": 64, "n_heads": 4,
      "n_layers": 2, "vocab_size": 100, "ffn_config": {"ffn_type": "mptglu"}})",
                                "mpt")
                  .value()
                  .model.gated_mlp);
}

// CohereForAI/c4ai-command-r-v01: 34,980,831,232 parameters. Its block has one norm, ours has two.
TEST(HuggingFaceText, TiesTheEmbeddingsOfCommandR) {
  const auto read = parse_huggingface(R"({"model_type": "cohere", "hidden_size": 8192,
      "intermediate_size": 22528, "num_hidden_layers": 40, "num_attention_heads": 64,
      "num_key_value_heads": 64, "vocab_size": 256000})",
                                      "command-r");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_NEAR(static_cast<double>(parameter_count(read->model, 8192)), 34'980'831'232.0, 2e6);
}

// Written with the key that bigscience/bloom uses for its width.
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

std::string with_sizes(const std::string& more) {
  return R"({"num_hidden_layers": 4, "hidden_size": 64, "intermediate_size": 128,
             "num_attention_heads": 4, "vocab_size": 100, )" +
         more + "}";
}

// The text tower of llava-hf/llava-1.5-7b-hf states only its vocabulary. A Llama 2 7B has
// 6,738,415,616 parameters with 32,000 words; the 64 additional words are rows of two matrices of
// 4,096 columns.
TEST(HuggingFaceText, FillsATowerThatLeavesOutWhatItsClassHas) {
  const auto read = parse_huggingface(R"({"model_type": "llava",
      "text_config": {"model_type": "llama", "vocab_size": 32064}})",
                                      "llava");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(parameter_count(read->model, 4096), 6'738'415'616 + 2 * 64 * 4096);
  EXPECT_THAT(read->assumptions, ::testing::Contains(HasSubstr("num_hidden_layers 32")));
}

// The card of google/gemma-3-4b-it gives its text tower 3,880,099,328 parameters with 262,144
// words; the class has 262,208.
TEST(HuggingFaceText, FillsTheTowerOfGemma3) {
  const auto read = parse_huggingface(R"({"model_type": "gemma3", "text_config": {
      "model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560,
      "intermediate_size": 10240, "sliding_window": 1024}})",
                                      "gemma");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(parameter_count(read->model, 4096) + uncounted_parameters(*read),
            3'880'099'328 + 64 * 2560);
  EXPECT_EQ(read->model.full_attention_every, 6);
}

// transformers 5.23 on the meta device counts 671,877,944,064 with the router's biases. The indexer
// of a layer has 1536 · 64 · 128 + 7168 · 128 + 2 · 128 + 7168 · 64 = 13,959,424, 61 times.
TEST(HuggingFaceText, CountsTheIndexerOfSparseAttention) {
  const auto read = parse_huggingface(R"({"model_type": "deepseek_v32", "num_hidden_layers": 61,
      "hidden_size": 7168, "num_attention_heads": 128, "intermediate_size": 18432,
      "vocab_size": 129280, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 256, "n_shared_experts": 1,
      "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
      "index_topk": 2048, "index_n_heads": 64, "index_head_dim": 128})",
                                      "v3.2");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(uncounted_parameters(*read), 61.0 * 13'959'424);
  EXPECT_EQ(parameter_count(read->model, 4096) + uncounted_parameters(*read), 671'877'944'064);
  EXPECT_THAT(read->assumptions, ::testing::Contains(HasSubstr("attention to all keys")));
}

// Published counts of DeepSeek-V3 exclude multi-token prediction: 671 billion (handbook, section
// 2). tests/model/workload/mtp_test.cpp computes what it adds.
TEST(HuggingFaceText, SaysWhatMultiTokenPredictionWouldAdd) {
  TRAINYARD_NEEDS_SHARED_DATA(shared);
  const auto read = read_huggingface(shared / "models" / "hf" / "DeepSeek-V3.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->model.mtp_layers, 0);
  EXPECT_EQ(parameter_count(read->model, 4096), 671'026'419'200);
  EXPECT_THAT(read->assumptions,
              ::testing::Contains(::testing::AllOf(HasSubstr("\"mtp_layers\": 1 adds it"),
                                                   HasSubstr("11610068224 parameters"))));
}

TEST(HuggingFaceText, ReadsPatternsOfWindows) {
  const auto pattern = [](const std::string& more) {
    const Transformer model = parse_huggingface(with_sizes(more), "config").value().model;
    return std::pair(model.sliding_window, model.full_attention_every);
  };
  EXPECT_EQ(pattern(R"("model_type": "exaone4", "sliding_window": 8,
                       "sliding_window_pattern": "LG")"),
            std::pair(8, 2));
  EXPECT_EQ(pattern(R"("model_type": "exaone4", "sliding_window": null)"), std::pair(0, 0));
  EXPECT_EQ(pattern(R"("model_type": "mistral")"), std::pair(4096, 0));
  EXPECT_EQ(pattern(R"("model_type": "qwen2", "sliding_window": 8)"), std::pair(0, 0));
  EXPECT_EQ(pattern(R"("model_type": "qwen2", "sliding_window": 8, "use_sliding_window": true,
                       "max_window_layers": 0)"),
            std::pair(8, 0));
  EXPECT_EQ(pattern(R"("model_type": "olmo3", "sliding_window": 8, "layer_types": [
      "sliding_attention", "full_attention", "sliding_attention", "full_attention"])"),
            std::pair(8, 2));
}

TEST(HuggingFaceText, ReadsWhichLayersHaveExperts) {
  const auto layers = [](const std::string& more) {
    const Transformer model =
        parse_huggingface(with_sizes(R"("num_experts": 8, "num_experts_per_tok": 2, )" + more),
                          "config")
            .value()
            .model;
    return std::pair(model.dense_layers, model.moe_every);
  };
  EXPECT_EQ(layers(R"("model_type": "llama4_text", "moe_layers": [1, 3])"), std::pair(0, 2));
  EXPECT_EQ(layers(R"("model_type": "qwen3_moe", "mlp_only_layers": [0, 1])"), std::pair(2, 1));
  EXPECT_EQ(layers(R"("model_type": "qwen3_moe", "decoder_sparse_step": 2)"), std::pair(0, 2));
  EXPECT_EQ(layers(R"("model_type": "glm4_moe", "mlp_layer_types": ["dense", "sparse", "sparse",
                       "sparse"])"),
            std::pair(1, 1));
  EXPECT_EQ(layers(R"("model_type": "unknown_moe", "moe_layer_freq": [0, 0, 1, 1])"),
            std::pair(2, 1));
  EXPECT_EQ(layers(R"("model_type": "qwen3_moe", "mlp_only_layers": [2])"), std::pair(1, 1));
}

struct Odd {
  std::string more;   // behind sizes that are right
  std::string where;  // of the error
  std::string found;
};

// The refusal is one line with the wrong key and its value.
TEST(HuggingFaceText, RefusesOddValuesWithTheirPlace) {
  const std::string moe = R"("model_type": "mixtral", "num_local_experts": 8, )";
  const std::vector<Odd> odd = {
      {R"("model_type": 5)", "/model_type", "found 5"},
      {R"("model_type": "llama", "hidden_act": ["silu"])", "/hidden_act", "found a list"},
      {R"("model_type": "llama", "num_key_value_heads": "4")", "/num_key_value_heads", "found"},
      {R"("model_type": "llama", "num_key_value_heads": -1)", "/num_key_value_heads", "found -1"},
      {R"("model_type": "llama", "num_key_value_heads": 3)", "/kv_heads", "found 3"},
      {R"("model_type": "llama", "head_dim": 1e300)", "/head_dim", "found 1e+300"},
      {R"("model_type": "llama", "head_dim": [16, 16, 16, 16])", "/head_dim", "found a list"},
      {R"("model_type": "llama", "tie_word_embeddings": "no")", "/tie_word_embeddings", "found"},
      {R"("model_type": "llama", "num_experts": [8, 4])", "/num_experts", "list of unlike values"},
      {R"("model_type": "llama", "num_experts": [])", "/num_experts", "empty list"},
      {R"("model_type": "gemma2", "layer_types": [])", "/layer_types", "found 0 entries"},
      {R"("model_type": "gemma2", "layer_types": "full_attention")", "/layer_types", "found"},
      {R"("model_type": "gemma2", "layer_types": [1, 2, 3, 4])", "/layer_types/0", "found 1"},
      {R"("model_type": "exaone4", "sliding_window_pattern": "LXG")", "/sliding_window_pattern",
       "\"LXG\""},
      {moe + R"("num_experts_per_tok": 9)", "/experts_per_token", "found 9"},
      {moe + R"("mlp_only_layers": [4])", "/mlp_only_layers/0", "found 4"},
      {moe + R"("mlp_only_layers": [0, 1, 2, 3])", "", "no layer that has them"},
      {moe + R"("mlp_only_layers": 1)", "/mlp_only_layers", "found 1"},
      {moe + R"("moe_layer_freq": [0, 1, 2, 1])", "/moe_layer_freq/2", "found 2"},
      {moe + R"("mlp_layer_types": ["dense"])", "/mlp_layer_types", "found 1 entry"},
      {R"("model_type": "minimax_m2", "attn_type_list": [1, 0, 1, 1])", "/attn_type_list/1",
       "found 0"},
  };
  for (const Odd& value : odd) {
    const auto read = parse_huggingface(with_sizes(value.more), "config");
    ASSERT_FALSE(read.has_value()) << value.more;
    EXPECT_EQ(read.error().where, value.where.empty() ? "config" : "config: " + value.where)
        << value.more;
    EXPECT_THAT(read.error().message, HasSubstr(value.found)) << value.more;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(HuggingFaceText, SaysWhereInTheTowerAnOddValueStands) {
  const auto read = parse_huggingface(R"({"model_type": "internvl_chat", "llm_config": {
      "model_type": "qwen2", "num_hidden_layers": -4}})",
                                      "config");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().where, "config: /llm_config/num_hidden_layers");
}

TEST(HuggingFaceText, RefusesOtherNetworksWithTheReason) {
  for (const auto& [more, reason] : std::vector<std::pair<std::string, std::string>>{
           {R"("model_type": "jamba")", "recurrent"},
           {R"("model_type": "qwen3_next")", "recurrent"},
           {R"("model_type": "granitemoehybrid")", "recurrent"},
           {R"("model_type": "mllama_text_model")", "cross attention"},
           {R"("model_type": "gemma3n_text")", "unlike sizes"},
           {R"("model_type": "jetmoe")", "experts of attention heads"},
           {R"("model_type": "longcat_flash")", "two attentions"},
           {R"("model_type": "brandnew", "mamba_d_state": 16)", "mamba_d_state"},
           {R"("model_type": "brandnew", "cross_attention_layers": [1])", "cross attention"},
           {R"("model_type": "brandnew", "block_configs": [{}, {}])", "unlike sizes"},
           {R"("model_type": "hunyuan_v1_moe", "use_cla": true)",
            "keys and values that layers share"},
           {R"("model_type": "step3_text", "share_q_dim": 32)", "narrower projection"},
           {R"("model_type": "gla")", "recurrent"},
           {R"("model_type": "gated_deltanet")", "recurrent"},
           {R"("model_type": "yuan")", "convolutions"},
           {R"("model_type": "stripedhyena")", "convolutions"},
           {R"("model_type": "ttt")", "recurrent"},
           {R"("model_type": "ouro", "total_ut_steps": 4)", "several times"},
           {R"("model_type": "electra")", "encoder"},
           {R"("model_type": "llama", "is_encoder_decoder": true)", "encoder"},
           {R"("model_type": "brandnew", "type_vocab_size": 2)", "encoder of segments"},
           {R"("model_type": "brandnew", "type_vocab_size": [3, 256])", "encoder of segments"},
       }) {
    const auto read = parse_huggingface(with_sizes(more), "config");
    ASSERT_FALSE(read.has_value()) << more;
    EXPECT_THAT(read.error().message, HasSubstr(reason));
  }
}

// The classes of these types in transformers attend to both sides, although no key says so.
TEST(HuggingFaceText, RefusesEncodersByTheirNames) {
  for (const char* type :
       {"mpnet",         "longformer",    "big_bird", "layoutlm", "layoutlmv3", "ernie",
        "ernie_m",       "data2vec-text", "xlm",      "roformer", "nezha",      "funnel",
        "nystromformer", "lilt",          "luke",     "tapas",    "canine",     "fnet",
        "new",           "mra",           "yoso",     "wav2vec2", "marian",     "led"}) {
    const auto read =
        parse_huggingface(with_sizes("\"model_type\": \"" + std::string(type) + "\""), "config");
    ASSERT_FALSE(read.has_value()) << type;
    EXPECT_THAT(read.error().message, HasSubstr("an encoder"));
  }
  EXPECT_TRUE(
      parse_huggingface(with_sizes(R"("model_type": "brandnew", "type_vocab_size": 0)"), "config")
          .has_value());
  EXPECT_TRUE(parse_huggingface(with_sizes(R"("model_type": "ernie4_5")"), "config").has_value());
}

// For an unknown network, no key may be ignored whose name suggests layers of another kind.
TEST(HuggingFaceText, RefusesUnreadKeysThatTellOfOtherLayers) {
  for (const auto& [key, value, means] : std::vector<std::array<std::string, 3>>{
           {"moe_config", R"({"moe_num_experts": 32, "moe_top_k": 2})",
            "experts would be left out"},
           {"num_zero_experts", "4", "experts"},
           {"use_moe", "true", "experts"},
           {"mamba_expand", "2", "recurrent"},
           {"ssm_d_inner", "128", "recurrent"},
           {"linear_attn_heads", "4", "recurrent"},
           {"conv_kernel", "3", "convolutions"},
           {"cross_attn_every", "4", "cross attention"},
       }) {
    const auto read = parse_huggingface(
        with_sizes(R"("model_type": "brandnew", ")" + key + R"(": )" + value), "config");
    ASSERT_FALSE(read.has_value()) << key;
    EXPECT_EQ(read.error().where, "config: /" + key);
    EXPECT_THAT(read.error().message, HasSubstr(means));
    EXPECT_THAT(read.error().message, HasSubstr("\"brandnew\", which is not known"));
  }
}

// Keys that are off, that concern routing or training, or that other keys make void.
TEST(HuggingFaceText, TakesAnUnknownNetworkWhoseOtherKeysAreOff) {
  for (const char* more : {
           R"("mamba_expand": 0, "use_moe": false, "moe_config": {}, "conv_kernel": null)",
           R"("num_experts": 1, "moe_topk": 1, "moe_intermediate_size": 32)",
           R"("conversation_style": "chat", "removed": 3)",
           R"("mamba_expand": 2, "layer_types": ["full_attention", "full_attention",
              "full_attention", "full_attention"])",
           R"("num_experts": 8, "num_experts_per_tok": 2, "use_moe": true, "moe_aux_loss_coef": 0.1,
              "expert_capacity_factor": 1.5, "moe_layers": [0, 1, 2, 3], "moe_layer_freq": 1)",
       }) {
    const auto read =
        parse_huggingface(with_sizes(std::string(R"("model_type": "brandnew", )") + more), "c");
    EXPECT_TRUE(read.has_value()) << more << ": " << read.error().message;
  }
}

TEST(HuggingFaceText, NamesWhatItDidNotReadOfAnUnknownNetwork) {
  const auto read = parse_huggingface(
      with_sizes(R"("model_type": "brandnew", "tie_word_embeddings": true, "window_stride": 2,
                    "layer_norm_eps": 1e-5, "hidden_act": "gelu", "use_bias": true,
                    "initializer_range": 0.02, "bos_token_id": 1, "use_gate": false,
                    "attention_sparsity": "blocks", "max_position_embeddings": 4096)"),
      "config");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_THAT(read->assumptions.front(),
              HasSubstr("(the embedding as its head, biases, LayerNorm, plain MLP)"));
  EXPECT_THAT(read->assumptions.front(),
              ::testing::EndsWith("not read: \"window_stride\", \"attention_sparsity\""));
}

// tie_word_embeddings is true in transformers' PretrainedConfig, and save_pretrained writes only
// differences from it. Jais has 13,020,966,400 parameters, and would have 435,159,040 more with a
// separate head.
TEST(HuggingFaceText, TakesTheEmbeddingAsTheHeadOfAnUnknownNetworkThatDoesNotSay) {
  const std::string jais =
      R"({"model_type": "jais", "activation_function": "swiglu", "n_embd": 5120,
      "n_head": 40, "n_inner": 13653, "n_layer": 40, "layer_norm_epsilon": 1e-05,
      "position_embedding_type": "alibi", "vocab_size": 84992)";
  const auto read = parse_huggingface(jais + "}", "jais");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_TRUE(read->model.tied_embeddings);
  EXPECT_NEAR(parameter_count(read->model, 0), 13'020'966'400, 3e6);
  EXPECT_FALSE(parse_huggingface(jais + R"(, "tie_word_embeddings": false})", "jais")
                   .value()
                   .model.tied_embeddings);
}

// modeling_doge.py of transformers: the experts of a mixture are rows of two embeddings.
TEST(HuggingFaceText, RefusesTheMixturesOfDoge) {
  const auto read =
      parse_huggingface(with_sizes(R"("model_type": "doge", "is_moe": true, "num_experts": 16384,
                                      "num_experts_per_tok": 64)"),
                        "doge");
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().message, HasSubstr("experts of one neuron each"));
}

// PowerInfer/SmallThinker-21BA3B-Instruct has no model_type. It has 21 B parameters, of which a
// token uses 3 B. By hand per layer: attention 2560 · 128 · (2 · 28 + 2 · 4), 64 experts of 3 ·
// 2560 · 768, the router, two norms.
TEST(HuggingFaceText, KnowsSmallThinkerByItsClass) {
  std::string layout = "0";
  for (int layer = 1; layer < 52; ++layer) layout += layer % 4 == 0 ? ", 0" : ", 1";
  const auto read = parse_huggingface(
      R"({"architectures": ["SmallThinkerForCausalLM"], "hidden_size": 2560, "head_dim": 128,
          "moe_ffn_hidden_size": 768, "moe_num_primary_experts": 64,
          "moe_num_active_primary_experts": 6, "num_attention_heads": 28, "num_hidden_layers": 52,
          "num_key_value_heads": 4, "vocab_size": 151936, "sliding_window_size": 4096,
          "tie_word_embeddings": false, "sliding_window_layout": [)" +
          layout + "]}",
      "smallthinker");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(parameter_count(read->model, 4096),
            52.0 * (20'971'520 + 377'487'360 + 163'840 + 5'120) + 2.0 * 151'936 * 2560 + 2560);
  EXPECT_EQ(read->model.experts_per_token, 6);
  EXPECT_EQ(read->model.sliding_window, 4096);
  EXPECT_EQ(read->model.full_attention_every, 4);
}

// configuration_llama.py gives the network a head of its own; configuration_gemma2.py does not.
TEST(HuggingFaceText, KnowsAFamilyWithoutModelTypeByItsClass) {
  const auto read = [](const std::string& network_class) {
    return parse_huggingface(with_sizes(R"("architectures": [")" + network_class + "\"]"), "c");
  };
  EXPECT_FALSE(read("LlamaForCausalLM").value().model.tied_embeddings);
  EXPECT_TRUE(read("Gemma2ForCausalLM").value().model.tied_embeddings);
  EXPECT_THAT(read("GPTNeoXForCausalLM").value().assumptions,
              ::testing::Contains("no model_type: taken as \"gpt_neox\", by its class"));
  EXPECT_FALSE(read("JambaForCausalLM").has_value());
}

// docs/interoperation.md lists each type that `find_architecture` knows once.
TEST(HuggingFaceText, FamiliesAreListedInTheDocumentation) {
  std::ifstream file(fs::path(TRAINYARD_SOURCE_FOLDER) / "docs" / "interoperation.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::set<std::string_view> types;
  for (const Architecture& architecture : architectures()) {
    EXPECT_TRUE(types.insert(architecture.type).second) << architecture.type;
    EXPECT_THAT(text, HasSubstr("`" + std::string(architecture.type) + "`"));
  }
}

}  // namespace
}  // namespace trainyard
