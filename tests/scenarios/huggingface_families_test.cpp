// Configs of published networks, family by family, with their exact numbers of parameters.
//
// The numbers are a second computation: Hugging Face transformers 5.23 builds the network of the
// config (on the meta device, without weights), and its tensors are added up, with the router's
// correction biases. The comments give what papers and cards print. The configs are the published
// ones, without keys that are no architecture and without long lists equal to the family's
// defaults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <string>

#include "tests/scenarios/uncounted_parameters.h"

namespace trainyard {
namespace {

struct Family {
  std::string name;
  double parameters;
  int positions;  // rows of learned positions
  std::string config;
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class HuggingFaceFamilies : public ::testing::TestWithParam<Family> {};

TEST_P(HuggingFaceFamilies, HaveTheirExactParameterCounts) {
  const auto read = parse_huggingface(GetParam().config, GetParam().name);
  ASSERT_TRUE(read.has_value()) << read.error().where << ": " << read.error().message;
  EXPECT_EQ(parameter_count(read->model, GetParam().positions) + uncounted_parameters(*read),
            GetParam().parameters);
  for (const std::string& line : read->assumptions) {
    EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("is not known")));
    EXPECT_THAT(line, ::testing::Not(::testing::HasSubstr("not said")));
  }
}

// clang-format off
const auto kFamilies = ::testing::Values(
    // 1.5 B
    Family{"openai-community/gpt2-xl", 1'557'611'200, 1024, R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25,
      "vocab_size": 50257})"},
    Family{"EleutherAI/gpt-neo-1.3B", 1'315'575'808, 2048, R"({"model_type": "gpt_neo", "num_layers": 24, "hidden_size": 2048, "num_heads": 16,
      "intermediate_size": null, "vocab_size": 50257, "window_size": 256})"},
    // 6 B
    Family{"EleutherAI/gpt-j-6b", 6'050'882'784, 0, R"({"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "n_inner": null,
      "vocab_size": 50400, "tie_word_embeddings": false})"},
    // 6,857,302,016 in the paper
    Family{"EleutherAI/pythia-6.9b", 6'857'302'016, 0, R"({"model_type": "gpt_neox", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 16384, "vocab_size": 50432,
      "use_parallel_residual": true, "tie_word_embeddings": false})"},
    // 20,554,567,680 in the paper
    Family{"EleutherAI/gpt-neox-20b", 20'554'567'680, 0, R"({"model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144,
      "num_attention_heads": 64, "intermediate_size": 24576, "vocab_size": 50432,
      "tie_word_embeddings": false})"},
    Family{"facebook/opt-350m", 331'196'416, 2048, R"({"model_type": "opt", "num_hidden_layers": 24, "hidden_size": 1024,
      "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272,
      "word_embed_proj_dim": 512, "do_layer_norm_before": false})"},
    // 7,069,016,064 in the card
    Family{"bigscience/bloom-7b1", 7'069'016'064, 0, R"({"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32,
      "vocab_size": 250880})"},
    Family{"tiiuae/falcon-7b", 6'921'720'704, 0, R"({"model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544,
      "num_attention_heads": 71, "num_kv_heads": 71, "vocab_size": 65024, "bias": false,
      "multi_query": true, "new_decoder_architecture": false, "parallel_attn": true})"},
    // 40 B
    Family{"tiiuae/falcon-40b", 41'303'293'952, 0, R"({"model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192,
      "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024, "bias": false,
      "multi_query": true, "new_decoder_architecture": true, "parallel_attn": true})"},
    Family{"tiiuae/falcon-rw-1b", 1'311'625'216, 0, R"({"model_type": "falcon", "num_hidden_layers": 24, "hidden_size": 2048,
      "num_attention_heads": 32, "vocab_size": 50304, "bias": true, "multi_query": false,
      "new_decoder_architecture": false, "parallel_attn": false, "alibi": true})"},
    // 11 B
    Family{"tiiuae/falcon-11B", 11'102'822'400, 0, R"({"model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 4096,
      "num_attention_heads": 32, "num_kv_heads": 8, "vocab_size": 65024, "bias": false,
      "multi_query": true, "new_decoder_architecture": true, "parallel_attn": true,
      "num_ln_in_parallel_attn": 1, "ffn_hidden_size": 16384,
      "tie_word_embeddings": false})"},
    Family{"mosaicml/mpt-7b", 6'649'286'656, 0, R"({"model_type": "mpt", "n_layers": 32, "d_model": 4096, "n_heads": 32,
      "expansion_ratio": 4, "vocab_size": 50432, "no_bias": true})"},
    Family{"bigcode/starcoder", 15'517'456'384, 8192, R"({"model_type": "gpt_bigcode", "n_layer": 40, "n_embd": 6144, "n_head": 48,
      "n_inner": 24576, "multi_query": true, "vocab_size": 49152})"},
    // 1.1 B; its class is GPT-2's with one head of keys, which transformers builds as gpt_bigcode.
    Family{"bigcode/santacoder", 1'124'886'528, 2048, R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadCustomModel"],
      "attention_head_type": "multiquery", "n_layer": 24, "n_embd": 2048, "n_head": 16,
      "n_inner": 8192, "vocab_size": 49280})"},
    Family{"bigcode/starcoder2-15b", 15'655'899'136, 0, R"({"model_type": "starcoder2", "num_hidden_layers": 40, "hidden_size": 6144,
      "num_attention_heads": 48, "intermediate_size": 24576, "vocab_size": 49152,
      "num_key_value_heads": 4, "use_bias": true, "sliding_window": 4096})"},
    // 2.7 B
    Family{"microsoft/phi-2", 2'779'683'840, 0, R"({"model_type": "phi", "num_hidden_layers": 32, "hidden_size": 2560,
      "num_attention_heads": 32, "intermediate_size": 10240, "vocab_size": 51200,
      "num_key_value_heads": 32, "tie_word_embeddings": false, "qk_layernorm": false})"},
    Family{"microsoft/phi-4", 14'659'507'200, 0, R"({"model_type": "phi3", "num_hidden_layers": 40, "hidden_size": 5120,
      "num_attention_heads": 40, "intermediate_size": 17920, "vocab_size": 100352,
      "num_key_value_heads": 10, "sliding_window": null, "attention_bias": false,
      "tie_word_embeddings": false})"},
    // 41.9 B
    Family{"microsoft/Phi-3.5-MoE-instruct", 41'873'153'344, 0, R"({"model_type": "phimoe", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 6400, "vocab_size": 32064,
      "num_key_value_heads": 8, "num_local_experts": 16, "num_experts_per_tok": 2,
      "attention_bias": true, "lm_head_bias": true, "tie_word_embeddings": false,
      "sliding_window": 131072})"},
    Family{"adept/persimmon-8b-base", 9'397'175'296, 0, R"({"model_type": "persimmon", "num_hidden_layers": 36, "hidden_size": 4096,
      "num_attention_heads": 64, "intermediate_size": 16384, "vocab_size": 262144,
      "hidden_act": "relu2", "qk_layernorm": true, "tie_word_embeddings": false})"},
    // 8.5 B
    Family{"google/gemma-7b", 8'537'680'896, 0, R"({"model_type": "gemma", "num_hidden_layers": 28, "hidden_size": 3072,
      "num_attention_heads": 16, "intermediate_size": 24576, "vocab_size": 256000,
      "num_key_value_heads": 16, "head_dim": 256})"},
    // 9.2 B
    Family{"google/gemma-2-9b", 9'241'705'984, 0, R"({"model_type": "gemma2", "num_hidden_layers": 42, "hidden_size": 3584,
      "num_attention_heads": 16, "intermediate_size": 14336, "vocab_size": 256000,
      "num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096})"},
    Family{"google/gemma-3-27b-it text", 27'009'346'304, 0, R"({"model_type": "gemma3_text", "num_hidden_layers": 62, "hidden_size": 5376,
      "num_attention_heads": 32, "intermediate_size": 21504, "vocab_size": 262208,
      "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024})"},
    Family{"google/vaultgemma-1b", 1'038'741'120, 0, R"({"model_type": "vaultgemma", "num_hidden_layers": 26, "hidden_size": 1152,
      "num_attention_heads": 4, "intermediate_size": 6912, "vocab_size": 256000,
      "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 512})"},
    // 0.49 B
    Family{"Qwen/Qwen2.5-0.5B", 494'032'768, 0, R"({"model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896,
      "num_attention_heads": 14, "intermediate_size": 4864, "vocab_size": 151936,
      "num_key_value_heads": 2, "tie_word_embeddings": true, "use_sliding_window": false,
      "sliding_window": 32768, "max_window_layers": 24})"},
    // 14.3 B
    Family{"Qwen/Qwen1.5-MoE-A2.7B", 14'315'784'192, 0, R"({"model_type": "qwen2_moe", "num_hidden_layers": 24, "hidden_size": 2048,
      "num_attention_heads": 16, "intermediate_size": 5632, "vocab_size": 151936,
      "num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4,
      "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
      "decoder_sparse_step": 1, "use_sliding_window": false, "sliding_window": 32768,
      "max_window_layers": 21})"},
    // 30.5 B
    Family{"Qwen/Qwen3-30B-A3B", 30'532'122'624, 0, R"({"model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048,
      "num_attention_heads": 32, "intermediate_size": 6144, "vocab_size": 151936,
      "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
      "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1,
      "mlp_only_layers": [], "use_sliding_window": false, "sliding_window": null})"},
    // 15.7 B
    Family{"deepseek-ai/DeepSeek-V2-Lite", 15'706'484'224, 0, R"({"model_type": "deepseek_v2", "num_hidden_layers": 27, "hidden_size": 2048,
      "num_attention_heads": 16, "intermediate_size": 10944, "vocab_size": 102400,
      "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": null,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6,
      "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "moe_layer_freq": 1,
      "topk_method": "greedy", "attention_bias": false})"},
    // 4 B
    Family{"openbmb/MiniCPM3-4B", 4'073'875'968, 0, R"({"model_type": "minicpm3", "num_hidden_layers": 62, "hidden_size": 2560,
      "num_attention_heads": 40, "intermediate_size": 6400, "vocab_size": 73448,
      "num_key_value_heads": 40, "kv_lora_rank": 256, "q_lora_rank": 768,
      "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64})"},
    Family{"mistralai/Mistral-Nemo-Base-2407", 12'247'782'400, 0, R"({"model_type": "mistral", "num_hidden_layers": 40, "hidden_size": 5120,
      "num_attention_heads": 32, "intermediate_size": 14336, "vocab_size": 131072,
      "num_key_value_heads": 8, "head_dim": 128, "sliding_window": null,
      "tie_word_embeddings": false})"},
    Family{"allenai/OLMo-7B-hf", 6'888'095'744, 0, R"({"model_type": "olmo", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 50304,
      "num_key_value_heads": 32, "tie_word_embeddings": false})"},
    Family{"allenai/OLMo-2-1124-7B", 7'298'617'344, 0, R"({"model_type": "olmo2", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 100352,
      "num_key_value_heads": 32, "tie_word_embeddings": false, "attention_bias": false})"},
    // 6.9 B
    Family{"allenai/OLMoE-1B-7B-0924", 6'919'161'856, 0, R"({"model_type": "olmoe", "num_hidden_layers": 16, "hidden_size": 2048,
      "num_attention_heads": 16, "intermediate_size": 1024, "vocab_size": 50304,
      "num_key_value_heads": 16, "num_experts": 64, "num_experts_per_tok": 8,
      "tie_word_embeddings": false})"},
    Family{"allenai/Olmo-3-1025-7B", 7'298'011'136, 0, R"({"model_type": "olmo3", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 100278,
      "num_key_value_heads": 32, "sliding_window": 4096, "tie_word_embeddings": false})"},
    Family{"ibm-granite/granite-3.0-8b-base", 8'170'848'256, 0, R"({"model_type": "granite", "num_hidden_layers": 40, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 12800, "vocab_size": 49155,
      "num_key_value_heads": 8, "tie_word_embeddings": true, "attention_bias": false,
      "mlp_bias": false})"},
    Family{"ibm-granite/granite-3.0-3b-a800m-base", 3'298'793'472, 0, R"({"model_type": "granitemoe", "num_hidden_layers": 32, "hidden_size": 1536,
      "num_attention_heads": 24, "intermediate_size": 512, "vocab_size": 49155,
      "num_key_value_heads": 8, "num_local_experts": 40, "num_experts_per_tok": 8,
      "tie_word_embeddings": true})"},
    Family{"stabilityai/stablelm-2-1_6b", 1'644'515'328, 0, R"({"model_type": "stablelm", "num_hidden_layers": 24, "hidden_size": 2048,
      "num_attention_heads": 32, "intermediate_size": 5632, "vocab_size": 100352,
      "num_key_value_heads": 32, "use_qkv_bias": true, "tie_word_embeddings": false,
      "layer_norm_eps": 1e-05})"},
    Family{"stabilityai/stablelm-2-12b", 12'143'185'920, 0, R"({"model_type": "stablelm", "num_hidden_layers": 40, "hidden_size": 5120,
      "num_attention_heads": 32, "intermediate_size": 13824, "vocab_size": 100352,
      "num_key_value_heads": 8, "use_qkv_bias": false, "qk_layernorm": true,
      "use_parallel_residual": true, "tie_word_embeddings": false})"},
    // 104 B
    Family{"CohereForAI/c4ai-command-r-plus", 103'810'674'688, 0, R"({"model_type": "cohere", "num_hidden_layers": 64, "hidden_size": 12288,
      "num_attention_heads": 96, "intermediate_size": 33792, "vocab_size": 256000,
      "num_key_value_heads": 8, "use_qk_norm": true})"},
    Family{"CohereForAI/c4ai-command-r7b-12-2024", 8'028'033'024, 0, R"({"model_type": "cohere2", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 14336, "vocab_size": 256000,
      "num_key_value_heads": 8, "sliding_window": 4096, "sliding_window_pattern": 4,
      "head_dim": 128})"},
    Family{"nvidia/Minitron-4B-Base", 4'190'509'056, 0, R"({"model_type": "nemotron", "num_hidden_layers": 32, "hidden_size": 3072,
      "num_attention_heads": 24, "intermediate_size": 9216, "vocab_size": 256000,
      "num_key_value_heads": 8, "head_dim": 128, "hidden_act": "relu2",
      "norm_eps": 1e-05, "tie_word_embeddings": false, "attention_bias": false,
      "mlp_bias": false})"},
    Family{"arcee-ai/AFM-4.5B", 4'619'184'640, 0, R"({"model_type": "arcee", "num_hidden_layers": 36, "hidden_size": 2560,
      "num_attention_heads": 20, "intermediate_size": 18432, "vocab_size": 128004,
      "num_key_value_heads": 4, "head_dim": 128, "hidden_act": "relu2",
      "tie_word_embeddings": false})"},
    Family{"swiss-ai/Apertus-8B-2509", 8'053'338'176, 0, R"({"model_type": "apertus", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 21504, "vocab_size": 131072,
      "num_key_value_heads": 8, "hidden_act": "xielu", "attention_bias": false,
      "tie_word_embeddings": false})"},
    // 36 B
    Family{"ByteDance-Seed/Seed-OSS-36B-Base", 36'151'104'512, 0, R"({"model_type": "seed_oss", "num_hidden_layers": 64, "hidden_size": 5120,
      "num_attention_heads": 80, "intermediate_size": 27648, "vocab_size": 155136,
      "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true,
      "attention_out_bias": false, "mlp_bias": false, "tie_word_embeddings": false})"},
    // 3 B
    Family{"HuggingFaceTB/SmolLM3-3B", 3'075'098'624, 0, R"({"model_type": "smollm3", "num_hidden_layers": 36, "hidden_size": 2048,
      "num_attention_heads": 16, "intermediate_size": 11008, "vocab_size": 128256,
      "num_key_value_heads": 4, "use_sliding_window": false, "sliding_window": null,
      "attention_bias": false})"},
    Family{"tencent/Hunyuan-7B-Instruct", 7'504'568'320, 0, R"({"model_type": "hunyuan_v1_dense", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 14336, "vocab_size": 128167,
      "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": true,
      "use_qk_norm": true, "attention_bias": false})"},
    // 80 B
    Family{"tencent/Hunyuan-A13B-Instruct", 80'393'183'232, 0, R"({"model_type": "hunyuan_v1_moe", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 3072, "vocab_size": 128167,
      "num_key_value_heads": 8, "head_dim": 128, "num_experts": 64,
      "moe_topk": [8, 8, 8], "num_shared_expert": [1, 1, 1],
      "moe_intermediate_size": [3072, 3072, 3072], "tie_word_embeddings": true,
      "use_qk_norm": true})"},
    Family{"kyutai/helium-1-2b", 1'892'796'416, 0, R"({"model_type": "helium", "num_hidden_layers": 28, "hidden_size": 2048,
      "num_attention_heads": 16, "intermediate_size": 8192, "vocab_size": 64000,
      "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": true})"},
    // 2.4 B
    Family{"microsoft/bitnet-b1.58-2B-4T", 2'412'820'480, 0, R"({"model_type": "bitnet", "num_hidden_layers": 30, "hidden_size": 2560,
      "num_attention_heads": 20, "intermediate_size": 6912, "vocab_size": 128256,
      "num_key_value_heads": 5, "hidden_act": "relu2", "tie_word_embeddings": true})"},
    // 21 B
    Family{"baidu/ERNIE-4.5-21B-A3B-PT", 21'825'437'888, 0, R"({"model_type": "ernie4_5_moe", "num_hidden_layers": 28, "hidden_size": 2560,
      "num_attention_heads": 20, "intermediate_size": 12288, "vocab_size": 103424,
      "num_key_value_heads": 4, "moe_num_experts": 64, "moe_k": 6,
      "moe_num_shared_experts": 2, "moe_intermediate_size": 1536,
      "moe_layer_start_index": 1, "moe_layer_interval": 1, "moe_layer_end_index": -1,
      "use_bias": false, "tie_word_embeddings": true})"},
    // 142 B
    Family{"rednote-hilab/dots.llm1.base", 142'774'381'696, 0, R"({"model_type": "dots1", "num_hidden_layers": 62, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 10944, "vocab_size": 152064,
      "num_key_value_heads": 32, "head_dim": 128, "n_routed_experts": 128,
      "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
      "first_k_dense_replace": 1, "topk_method": "noaux_tc", "attention_bias": false,
      "sliding_window": null, "tie_word_embeddings": false})"},
    // 230 B
    Family{"MiniMaxAI/MiniMax-M2", 228'689'764'864, 0, R"({"model_type": "minimax_m2", "num_hidden_layers": 62, "hidden_size": 3072,
      "num_attention_heads": 48, "intermediate_size": 1536, "vocab_size": 200064,
      "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 256,
      "num_experts_per_tok": 8, "use_qk_norm": true, "tie_word_embeddings": false})"},
    Family{"zai-org/GLM-4-32B-0414", 32'566'081'536, 0, R"({"model_type": "glm4", "num_hidden_layers": 61, "hidden_size": 6144,
      "num_attention_heads": 48, "intermediate_size": 23040, "vocab_size": 151552,
      "num_key_value_heads": 2, "head_dim": 128, "attention_bias": false,
      "tie_word_embeddings": false})"},
    Family{"zai-org/glm-4-9b-hf", 9'399'951'360, 0, R"({"model_type": "glm", "num_hidden_layers": 40, "hidden_size": 4096,
      "num_attention_heads": 32, "intermediate_size": 13696, "vocab_size": 151552,
      "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true,
      "tie_word_embeddings": false})"},
    // 106 B
    Family{"zai-org/GLM-4.5-Air", 106'852'251'264, 0, R"({"model_type": "glm4_moe", "num_hidden_layers": 46, "hidden_size": 4096,
      "num_attention_heads": 96, "intermediate_size": 10944, "vocab_size": 151552,
      "num_key_value_heads": 8, "head_dim": 128, "n_routed_experts": 128,
      "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
      "first_k_dense_replace": 1, "attention_bias": true, "use_qk_norm": false,
      "tie_word_embeddings": false})"},
    // 116.83 B
    Family{"openai/gpt-oss-120b", 116'829'156'672, 0, R"({"model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880,
      "num_attention_heads": 64, "intermediate_size": 2880, "vocab_size": 201088,
      "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 128,
      "num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": true})"},
    // 400 B
    Family{"meta-llama/Llama-4-Maverick text", 400'711'848'960, 0, R"({"model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120,
      "num_attention_heads": 40, "intermediate_size": 8192, "vocab_size": 202048,
      "num_key_value_heads": 8, "head_dim": 128, "intermediate_size_mlp": 16384,
      "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
      "use_qk_norm": false, "attention_chunk_size": 8192, "tie_word_embeddings": false})"},
    Family{"Salesforce/codegen-6B-mono", 7'064'213'504, 0, R"({"model_type": "codegen", "n_layer": 33, "n_embd": 4096, "n_head": 16,
      "vocab_size": 51200, "tie_word_embeddings": false})"},
    Family{"facebook/xglm-1.7B", 1'732'907'008, 0, R"({"model_type": "xglm", "num_layers": 24, "d_model": 2048, "attention_heads": 16,
      "ffn_dim": 8192, "vocab_size": 256008})"},
    Family{"microsoft/biogpt", 346'763'264, 1024, R"({"model_type": "biogpt", "num_hidden_layers": 24, "hidden_size": 1024,
      "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 42384})"},
    Family{"zai-org/GLM-4.7-Flash", 29'943'393'920, 0, R"({"model_type": "glm4_moe_lite", "num_hidden_layers": 47, "hidden_size": 2048,
      "num_attention_heads": 20, "intermediate_size": 10240, "vocab_size": 154880,
      "num_key_value_heads": 20, "kv_lora_rank": 512, "q_lora_rank": 768,
      "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
      "n_routed_experts": 64, "n_shared_experts": 1, "num_experts_per_tok": 4,
      "moe_intermediate_size": 1536, "first_k_dense_replace": 1,
      "topk_method": "noaux_tc", "tie_word_embeddings": false})"},
    Family{"facebook/cwm", 32'581'097'472, 0, R"({"model_type": "cwm", "num_hidden_layers": 64, "hidden_size": 6144,
      "num_attention_heads": 48, "intermediate_size": 21504, "vocab_size": 128256,
      "num_key_value_heads": 8, "head_dim": 128, "sliding_window": 8192,
      "tie_word_embeddings": false})"},
    Family{"deepseek-ai/DeepSeek-V3.2", 671'877'944'064, 0, R"({"model_type": "deepseek_v32", "num_hidden_layers": 61, "hidden_size": 7168,
      "num_attention_heads": 128, "intermediate_size": 18432, "vocab_size": 129280,
      "num_key_value_heads": 128, "kv_lora_rank": 512, "q_lora_rank": 1536,
      "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
      "moe_intermediate_size": 2048, "first_k_dense_replace": 3, "index_n_heads": 64,
      "index_head_dim": 128, "index_topk": 2048, "topk_method": "noaux_tc",
      "tie_word_embeddings": false})"},
    // Families whose code lies beside their weights: totals of the cards' safetensors.
    Family{"Qwen/Qwen-7B", 7'721'324'544, 0, R"({"model_type": "qwen", "num_hidden_layers": 32, "hidden_size": 4096,
      "num_attention_heads": 32, "kv_channels": 128, "intermediate_size": 22016,
      "vocab_size": 151936, "no_bias": true, "tie_word_embeddings": false})"},
    Family{"zai-org/chatglm3-6b", 6'243'584'000, 0, R"({"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096,
      "num_attention_heads": 32, "kv_channels": 128, "multi_query_attention": true,
      "multi_query_group_num": 2, "ffn_hidden_size": 13696, "padded_vocab_size": 65024,
      "add_bias_linear": false, "add_qkv_bias": true, "rmsnorm": true})"},
    Family{"baichuan-inc/Baichuan2-7B-Base", 7'505'973'248, 0, R"({"model_type": "baichuan", "num_hidden_layers": 32,
      "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008,
      "vocab_size": 125696, "tie_word_embeddings": false})"},
    // 7 B. By hand, as modeling_internlm.py has it: 32 layers of 4 · (4096² + 4096), 3 · 4096 · 11008
    // and 2 · 4096; 2 · 103168 · 4096 and the last norm's 4096.
    Family{"internlm/internlm-7b", 7'321'948'160, 0, R"({"model_type": "internlm", "num_hidden_layers": 32,
      "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008,
      "vocab_size": 103168, "bias": true, "tie_word_embeddings": false})"},
    Family{"internlm/internlm2-7b", 7'737'708'544, 0, R"({"model_type": "internlm2", "num_hidden_layers": 32,
      "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
      "intermediate_size": 14336, "vocab_size": 92544, "bias": false})"},
    Family{"LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", 7'818'448'896, 0, R"({"model_type": "exaone", "num_layers": 32,
      "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
      "intermediate_size": 14336, "vocab_size": 102400, "layer_norm_epsilon": 1e-05})"},
    Family{"deepseek-ai/deepseek-moe-16b-base", 16'375'728'128, 0, R"({"model_type": "deepseek", "num_hidden_layers": 28,
      "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 16,
      "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64,
      "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
      "moe_layer_freq": 1, "vocab_size": 102400, "tie_word_embeddings": false})"},
    Family{"inclusionAI/Ling-lite", 16'801'974'272, 0, R"({"model_type": "bailing_moe", "num_hidden_layers": 28,
      "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128,
      "intermediate_size": 5632, "moe_intermediate_size": 1408, "num_experts": 64,
      "num_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 0,
      "use_bias": false, "use_qkv_bias": false, "vocab_size": 126464})"},
    // Of these the tensors of the code, added up by hand. 7.6 B: 42 layers of (4096 + 1) · 6144,
    // (4096 + 1) · 4096, 2 · 4096 · 16384 + 16384 + 4096 and 4 · 4096.
    Family{"WisdomShell/CodeShell-7B", 7'688'048'640, 0, R"({"model_type": "codeshell", "n_layer": 42, "n_embd": 4096, "n_head": 32,
      "n_inner": 16384, "num_query_groups": 8, "group_query_attention": true,
      "activation_function": "gelu_pytorch_tanh", "layer_norm_epsilon": 1e-05,
      "position_embedding_type": "rope", "vocab_size": 70144})"},
    // 4 B: 32 layers of 1536 · 128 · 28, 32 experts of 3 · 1536 · 768, the router and 2 · 1536.
    Family{"PowerInfer/SmallThinker-4BA0.6B-Instruct", 4'035'085'824, 0, R"({"model_type": "smallthinker", "num_hidden_layers": 32,
      "hidden_size": 1536, "num_attention_heads": 12, "num_key_value_heads": 2, "head_dim": 128,
      "moe_num_primary_experts": 32, "moe_num_active_primary_experts": 4,
      "moe_ffn_hidden_size": 768, "vocab_size": 151936, "sliding_window_size": 4096,
      "tie_word_embeddings": true})"},
    // 270 B: 64 layers of 8192 · 128 · 144, 8 experts of 3 · 8192 · 16384, the router, the MLP of
    // 3 · 8192 · 32768 beside them and 4 · 8192.
    Family{"xai-org/grok-2", 269'515'497'472, 0, R"({"model_type": "git", "architectures": ["Grok1ForCausalLM"],
      "vocab_size": 131072, "hidden_size": 8192, "intermediate_size": 32768,
      "moe_intermediate_size": 16384, "num_experts_per_tok": 2, "num_local_experts": 8,
      "residual_moe": true, "num_attention_heads": 64, "num_key_value_heads": 8,
      "num_hidden_layers": 64, "head_dim": 128, "rms_norm_eps": 1e-05, "sliding_window_size": -1,
      "global_attn_every_n": 1})"},
    // 7.62 B: the network of Qwen2-7B, as transformers counts that one.
    Family{"allenai/Molmo-7B-D text", 7'615'616'512, 0, R"({"model_type": "molmo", "attention_layer_norm": false,
      "embedding_size": 152064, "hidden_size": 3584, "intermediate_size": 37888,
      "layer_norm_eps": 1e-06, "layer_norm_type": "rms", "num_attention_heads": 28,
      "num_hidden_layers": 28, "num_key_value_heads": 4, "qkv_bias": true,
      "tie_word_embeddings": false, "vocab_size": 152064, "weight_tying": false})"},
    // As under their later names, above.
    Family{"tiiuae/falcon-7b of May 2023", 6'921'720'704, 0, R"({"model_type": "RefinedWebModel", "n_layer": 32, "hidden_size": 4544,
      "n_head": 71, "vocab_size": 65024, "bias": false, "multi_query": true, "alibi": false,
      "layer_norm_epsilon": 1e-05, "parallel_attn": true})"},
    Family{"tiiuae/falcon-40b of May 2023", 41'303'293'952, 0, R"({"model_type": "RefinedWeb", "n_layer": 60, "hidden_size": 8192,
      "n_head": 128, "n_head_kv": 8, "vocab_size": 65024, "bias": false, "alibi": false,
      "layer_norm_epsilon": 1e-05, "parallel_attn": true})"},
    Family{"allenai/OLMo-7B", 6'888'095'744, 0, R"({"model_type": "hf_olmo", "d_model": 4096, "embedding_size": 50304,
      "include_bias": false, "layer_norm_type": "default", "layer_norm_with_affine": false,
      "mlp_hidden_size": 22016, "mlp_ratio": 4, "multi_query_attention": false, "n_heads": 32,
      "n_layers": 32, "vocab_size": 50280, "weight_tying": false})"},
    Family{"SmallDoge/Doge-320M", 335'750'272, 0, R"({"model_type": "doge", "num_hidden_layers": 32, "hidden_size": 1024,
      "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 2048,
      "vocab_size": 32768, "tie_word_embeddings": true, "is_moe": false,
      "keep_window_size": 2048, "num_experts": 16384, "num_experts_per_tok": 64})"},
    // 6.2 B. By hand, a layer: 4 · 4096² and 2 · 4096 · 16384 with their biases, 4 · 4096 of norms;
    // 130528 · 4096 of the embedding, which is the head, and 2 · 4096.
    Family{"THUDM/chatglm-6b", 6'173'286'400, 0, R"({"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096,
      "num_attention_heads": 32, "inner_hidden_size": 16384, "layernorm_epsilon": 1e-05,
      "position_encoding_2d": true, "vocab_size": 130528})"},
    // 7.39 B. By hand, a layer: 4096 · (4096 + 2 · 1024 + 4096) and 3 · 4096 · 14336, biases of
    // 6144 + 4096 + 28672 + 4096, 4 · 4096 of norms; 100352 · 4096 of the embedding, 2 · 4096.
    Family{"microsoft/Phi-3-small-8k-instruct", 7'392'272'384, 0, R"({"model_type": "phi3small", "num_hidden_layers": 32,
      "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
      "ff_intermediate_size": 14336, "hidden_act": "gegelu", "attention_bias": false,
      "blocksparse_block_size": 64, "dense_attention_every_n_layers": 2, "vocab_size": 100352})"});
// clang-format on

INSTANTIATE_TEST_SUITE_P(Published, HuggingFaceFamilies, kFamilies, [](const auto& tested) {
  std::string name = tested.param.name;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace trainyard
