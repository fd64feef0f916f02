#include "scenarios/huggingface/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/huggingface/parallel_blocks.h"

namespace trainyard {
namespace {

// Families whose code ignores `attention_bias`.
constexpr auto kFixedBiases = std::to_array<std::string_view>(
    {"biogpt",     "bloom",         "codegen",      "cwm",
     "dbrx",       "ernie4_5",      "ernie4_5_moe", "exaone4",
     "exaone_moe", "falcon",        "gpt2",         "gpt_bigcode",
     "gpt_neo",    "gptj",          "minimax_m2",   "ministral",
     "ministral3", "mistral",       "mixtral",      "mpt",
     "openai-gpt", "opt",           "persimmon",    "phi",
     "phi3",       "phi3small",     "qwen2",        "qwen2_moe",
     "qwen2_vl",   "qwen2_vl_text", "qwen2_5_vl",   "qwen2_5_vl_text",
     "stablelm",   "starcoder2",    "xglm"});

// Known families whose code reads `mlp_bias`.
constexpr auto kBiasedMlps = std::to_array<std::string_view>(
    {"arcee", "deepseek_v2", "doge", "granite", "helium", "hyperclovax", "jais2", "llama",
     "nemotron", "seed_oss", "smollm3"});

bool asks_mlp_bias(const Reading& reading) {
  return !is_known_family(reading) ||
         std::ranges::find(kBiasedMlps, reading.architecture.type) != kBiasedMlps.end();
}

bool says_attention_bias(Reading& reading) {
  const bool fixed =
      std::ranges::find(kFixedBiases, reading.architecture.type) != kFixedBiases.end();
  const bool said = reading.config.has("attention_bias");
  return !fixed && (said || reading.config.says_none({"attention_bias"}));
}

// Whether all queries share one head of keys and values.
bool is_multi_query(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  const std::string_view type = reading.architecture.type;
  if (type == "mpt") return config.text("attn_type") == "multiquery_attention";
  if (config.text("attention_head_type") == "multiquery") return true;  // SantaCoder, a GPT-2
  return !is_known_family(reading) && config.flag({"multi_query"}, false);
}

int read_kv_heads(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  const Architecture& architecture = reading.architecture;
  const int heads = reading.model.attention_heads;
  const bool falcon = architecture.type == "falcon";
  if (architecture.type == "gpt_bigcode" || (falcon && !has_new_decoder(config))) {
    return config.flag({"multi_query"}, true) ? 1 : heads;
  }
  if (is_multi_query(reading)) return 1;
  if (!config.flag({"multi_query_attention"}, true)) return heads;  // ChatGLM
  if (!config.flag({"group_query_attention"}, true)) return heads;  // CodeShell
  const HuggingFaceConfig::Keys keys = {
      "num_key_value_heads", "num_kv_heads", "num_attention_groups", "multi_query_group_num",
      "num_query_groups",    "n_head_kv",    "n_kv_heads",           "kv_n_heads"};
  if (config.find(keys) != nullptr) return config.small_count(keys, heads);
  const int by_class = architecture.sizes.kv_heads;
  const bool fits = by_class > 0 && by_class != heads && heads % by_class == 0;
  return fits && !config.says_none(keys) ? of_class(reading, *keys.begin(), by_class) : heads;
}

int read_head_dim(Reading& reading) {
  const HuggingFaceConfig::Keys keys = {"head_dim", "kv_channels", "attention_head_dim"};
  if (reading.config.find(keys) != nullptr) return reading.config.small_count(keys, 0);
  const int by_class = reading.architecture.sizes.head_dim;
  const bool same = by_class * reading.model.attention_heads == reading.model.hidden_size;
  if (by_class == 0 || same || reading.config.says_none(keys)) return 0;
  return of_class(reading, *keys.begin(), by_class);
}

int latent_size(Reading& reading, std::string_view key, int LatentAttention::*size) {
  const int by_class = reading.architecture.latent.*size;
  const bool left_out = by_class > 0 && !reading.config.has(key);
  return left_out ? of_class(reading, key, by_class) : reading.config.required({key});
}

bool has_latent_attention(Reading& reading) {
  if (reading.config.has("kv_lora_rank")) return true;
  return reading.architecture.latent.kv_rank > 0 && !reading.config.says_none({"kv_lora_rank"});
}

void read_latent_attention(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  using L = LatentAttention;
  L latent{.kv_rank = latent_size(reading, "kv_lora_rank", &L::kv_rank),
           .nope_head_dim = latent_size(reading, "qk_nope_head_dim", &L::nope_head_dim),
           .rope_head_dim = latent_size(reading, "qk_rope_head_dim", &L::rope_head_dim),
           .value_head_dim = latent_size(reading, "v_head_dim", &L::value_head_dim)};
  const int rank_by_class = reading.architecture.latent.query_rank;
  const bool left_out = !config.has("q_lora_rank") && !config.says_none({"q_lora_rank"});
  latent.query_rank = left_out && rank_by_class > 0
                          ? of_class(reading, "q_lora_rank", rank_by_class)
                          : config.small_count({"q_lora_rank"}, 0);
  reading.model.latent_attention = latent;
  reading.model.kv_heads = reading.model.attention_heads;
  if (!config.has("index_topk")) return;
  reading.facts.index_heads = config.small_count({"index_n_heads"}, 0);
  reading.facts.index_head_dim = config.small_count({"index_head_dim"}, 0);
  config.assume(fmt::format(
      "sparse attention is planned as attention to all keys: too slow beyond {} keys a query",
      config.small_count({"index_topk"}, 0)));
}

}  // namespace

int of_class(Reading& reading, std::string_view key, int value) {
  reading.of_class.push_back(fmt::format("{} {}", key, value));
  return value;
}

int read_size(Reading& reading, HuggingFaceConfig::Keys keys, int ClassSizes::*size, double most) {
  const int value = reading.architecture.sizes.*size;
  if (reading.tower && value > 0 && reading.config.find(keys) == nullptr) {
    return of_class(reading, *keys.begin(), value);
  }
  return reading.config.required(keys, most);
}

void read_attention(Reading& reading) {
  Transformer& model = reading.model;
  model.attention_heads = read_size(
      reading, {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"},
      &ClassSizes::attention_heads);
  model.kv_heads = read_kv_heads(reading);
  model.head_dim = read_head_dim(reading);
  if (has_latent_attention(reading)) read_latent_attention(reading);
  const Architecture& architecture = reading.architecture;
  const bool norm =
      reading.config.flag({"use_qk_norm", "qk_layernorm", "qk_norm", "attention_layer_norm"},
                          architecture.qk_norm != HeadNorm::none);
  reading.facts.qk_norm = !norm                                    ? HeadNorm::none
                          : architecture.qk_norm != HeadNorm::none ? architecture.qk_norm
                                                                   : architecture.qk_norm_on_demand;
  model.qk_norm = norm && !model.latent_attention;
  model.attention_sinks = architecture.sinks;
}

// `attention_bias` is for the projections of queries, keys and values and, in most families, of the
// output; `use_bias` and similar keys are for every linear layer.
void read_biases(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  const Architecture& architecture = reading.architecture;
  LinearBiases biases = architecture.biases;
  const HuggingFaceConfig::Keys everywhere = {"use_bias", "add_bias_linear", "enable_bias",
                                              "include_bias", "bias"};
  if (config.find(everywhere) != nullptr || config.says_none(everywhere)) {
    const bool all = config.flag(everywhere, false);
    const bool of_attention = architecture.type == "internlm" || architecture.type == "internlm2";
    const bool mlp = all && !of_attention;
    biases = {.qkv = all, .output = all, .mlp = mlp};
    if (architecture.type == "chatglm") biases.qkv = true;
  }
  if (says_attention_bias(reading)) {
    biases.qkv = config.flag({"attention_bias"}, false);
    biases.output = biases.qkv && architecture.attention_bias_of_output;
  }
  biases.qkv = config.flag({"add_qkv_bias", "qkv_bias", "use_qkv_bias"}, biases.qkv);
  biases.output = config.flag({"attention_out_bias"}, biases.output);
  if (asks_mlp_bias(reading)) biases.mlp = config.flag({"mlp_bias"}, biases.mlp);
  reading.facts.biases = biases;
  reading.facts.head_bias = config.flag({"lm_head_bias"}, architecture.head_bias);
  Transformer& model = reading.model;
  model.biases = biases.qkv && biases.output && biases.mlp;
  model.qkv_biases = biases.qkv && !model.biases && !model.latent_attention;
}

}  // namespace trainyard
