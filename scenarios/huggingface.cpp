#include "scenarios/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"

namespace trainyard {
namespace {

// What the code of an architecture fixes and its config does not say (Hugging Face transformers,
// models/<type>/configuration_<type>.py and modeling_<type>.py).
struct Architecture {
  std::string_view type;  // model_type
  bool layer_norm = false;
  bool plain_mlp = false;  // one up projection, no gate
  bool biases = false;
  bool qkv_biases = false;
  bool tied = false;  // unless tie_word_embeddings says otherwise
  bool learned_positions = false;
  bool qk_norm = false;
  int full_attention_every = 0;  // of a sliding-window model, unless its config says it
};
constexpr Architecture kLlamaLike{};
constexpr std::array kArchitectures = {
    Architecture{.type = "llama"},
    Architecture{.type = "llama4_text"},
    Architecture{.type = "mistral"},
    Architecture{.type = "mixtral"},
    Architecture{.type = "qwen2", .qkv_biases = true},
    Architecture{.type = "qwen2_moe", .qkv_biases = true},
    Architecture{.type = "qwen2_vl", .qkv_biases = true},
    Architecture{.type = "qwen2_vl_text", .qkv_biases = true},
    Architecture{.type = "qwen2_5_vl", .qkv_biases = true},
    Architecture{.type = "qwen2_5_vl_text", .qkv_biases = true},
    Architecture{.type = "qwen3", .qk_norm = true},
    Architecture{.type = "qwen3_moe", .qk_norm = true},
    Architecture{.type = "qwen3_vl_text", .qk_norm = true},
    Architecture{.type = "qwen3_vl_moe_text", .qk_norm = true},
    Architecture{.type = "deepseek_v2"},
    Architecture{.type = "deepseek_v3"},
    Architecture{.type = "kimi_k2"},
    Architecture{.type = "gpt_oss", .biases = true, .full_attention_every = 2},
    Architecture{.type = "gemma", .tied = true},
    Architecture{.type = "gemma2", .tied = true, .full_attention_every = 2},
    Architecture{.type = "gemma3_text", .tied = true, .qk_norm = true, .full_attention_every = 6},
    Architecture{.type = "gpt2",
                 .layer_norm = true,
                 .plain_mlp = true,
                 .biases = true,
                 .tied = true,
                 .learned_positions = true},
    Architecture{.type = "gpt_neox", .layer_norm = true, .plain_mlp = true, .biases = true},
    Architecture{.type = "gptj", .layer_norm = true, .plain_mlp = true},
    Architecture{.type = "opt",
                 .layer_norm = true,
                 .plain_mlp = true,
                 .biases = true,
                 .tied = true,
                 .learned_positions = true},
    Architecture{
        .type = "bloom", .layer_norm = true, .plain_mlp = true, .biases = true, .tied = true},
    Architecture{.type = "falcon", .layer_norm = true, .plain_mlp = true, .tied = true},
    Architecture{.type = "mpt", .layer_norm = true, .plain_mlp = true, .tied = true},
    Architecture{
        .type = "starcoder2", .layer_norm = true, .plain_mlp = true, .biases = true, .tied = true},
    Architecture{.type = "phi", .layer_norm = true, .plain_mlp = true, .biases = true},
    Architecture{.type = "phi3"},
    Architecture{.type = "phimoe", .layer_norm = true},
    Architecture{.type = "chatglm"},
    Architecture{.type = "glm"},
    Architecture{.type = "glm4"},
    Architecture{.type = "glm4_moe"},
    Architecture{.type = "olmo2", .qk_norm = true},
    Architecture{.type = "granite", .tied = true},
    Architecture{.type = "internlm2"},
    Architecture{.type = "stablelm", .layer_norm = true},
    Architecture{.type = "cohere", .layer_norm = true, .tied = true},
    Architecture{.type = "cohere2", .layer_norm = true, .tied = true, .full_attention_every = 4},
    Architecture{.type = "dbrx", .layer_norm = true},
    Architecture{.type = "yi"},
};

// Families whose layers are not (only) softmax attention and an MLP of a decoder.
constexpr auto kNotDecoders = std::to_array<std::string_view>(
    {"bert",         "t5",          "bart",  "whisper",    "vit",       "clip",      "mamba",
     "rwkv",         "jamba",       "zamba", "nemotron_h", "falcon_h1", "recurrent", "qwen3_next",
     "minimax_text", "kimi_linear", "bamba", "hybrid",     "lfm2",      "xlstm"});

// Layers that `layer_types` may name.
constexpr auto kSoftmaxLayers =
    std::to_array<std::string_view>({"full_attention", "sliding_attention", "chunked_attention"});

// Reads keys of the config; remembers the first error instead of stopping at it.
class Config {
 public:
  Config(const Json& json, Place place) : json_(json), place_(std::move(place)) {}

  // The first of the keys that is there and not null.
  const Json* find(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      const auto member = json_.find(key);
      if (member == json_.end() || member->is_null()) continue;
      last_key_ = key;
      return &*member;
    }
    return nullptr;
  }

  std::int64_t count(std::initializer_list<std::string_view> keys, std::int64_t fallback) {
    const Json* value = find(keys);
    if (value == nullptr) return fallback;
    constexpr CountShape kCount{.least = 0, .most = 1e8};
    const auto fits = check({kCount}, *value, place_ / last_key_);
    if (!fits) {
      remember(fits.error());
      return fallback;
    }
    return static_cast<std::int64_t>(value->get<double>());
  }

  int small_count(std::initializer_list<std::string_view> keys, int fallback) {
    return static_cast<int>(count(keys, fallback));
  }

  int required(std::initializer_list<std::string_view> keys) {
    if (find(keys) == nullptr) {
      remember(
          place_
              .error(fmt::format("found no \"{}\"; allowed: the config of a decoder that says it",
                                 *keys.begin()))
              .value());
      return 1;
    }
    const int value = small_count(keys, 1);
    if (value < 1) {
      remember((place_ / last_key_).error("found 0; allowed: a whole number from 1").value());
    }
    return std::max(1, value);
  }

  bool flag(std::initializer_list<std::string_view> keys, bool fallback) {
    const Json* value = find(keys);
    if (value == nullptr) return fallback;
    const auto fits = check({FlagShape{}}, *value, place_ / last_key_);
    if (!fits) remember(fits.error());
    return fits ? value->get<bool>() : fallback;
  }

  std::string text(std::string_view key) {
    const Json* value = find({key});
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }

  void remember(Error error) {
    if (!error_) error_ = std::move(error);
  }
  const std::optional<Error>& error() const { return error_; }
  const Place& place() const { return place_; }

  std::vector<std::string> assumptions;
  void assume(std::string what) { assumptions.push_back(std::move(what)); }

 private:
  const Json& json_;
  Place place_;
  std::string_view last_key_;
  std::optional<Error> error_;
};

const Architecture& architecture_of(Config& config) {
  const std::string type = config.text("model_type");
  const auto* const known = std::ranges::find(kArchitectures, type, &Architecture::type);
  if (known != kArchitectures.end()) return *known;
  config.assume(fmt::format(
      "model_type \"{}\" is not known: taken as Llama-like (RMSNorm, gated MLP, no biases)", type));
  return kLlamaLike;
}

void refuse_other_networks(Config& config) {
  const std::string type = config.text("model_type");
  const bool other = std::ranges::any_of(
      kNotDecoders, [&](std::string_view family) { return type.find(family) != type.npos; });
  if (!other && !config.flag({"is_encoder_decoder"}, false)) return;
  config.remember(config.place()
                      .error(fmt::format("found a {} network; allowed: a dense, MoE or MLA decoder",
                                         type.empty() ? "encoder-decoder" : type))
                      .value());
}

void refuse_other_layers(Config& config) {
  const Json* types = config.find({"layer_types"});
  if (types == nullptr || !types->is_array()) return;
  for (std::size_t i = 0; i < types->size(); ++i) {
    const Json& type = (*types)[i];
    if (std::ranges::find(kSoftmaxLayers, type) != kSoftmaxLayers.end()) continue;
    return config.remember((config.place() / "layer_types" / i)
                               .error(fmt::format("found {}; allowed: full_attention, "
                                                  "sliding_attention, chunked_attention",
                                                  shown(type)))
                               .value());
  }
}

void read_attention(Config& config, Transformer& model) {
  model.attention_heads = config.required({"num_attention_heads", "n_head", "n_heads"});
  const int heads = config.flag({"multi_query"}, false) ? 1 : model.attention_heads;
  model.kv_heads = config.small_count(
      {"num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv", "kv_n_heads"},
      heads);
  model.head_dim = config.small_count({"head_dim", "kv_channels"}, 0);
  if (config.find({"kv_lora_rank"}) == nullptr) return;
  model.latent_attention = LatentAttention{
      .query_rank = config.small_count({"q_lora_rank"}, 0),
      .kv_rank = config.required({"kv_lora_rank"}),
      .nope_head_dim = config.required({"qk_nope_head_dim"}),
      .rope_head_dim = config.required({"qk_rope_head_dim"}),
      .value_head_dim = config.required({"v_head_dim"}),
  };
  model.kv_heads = model.attention_heads;
}

void read_biases(Config& config, const Architecture& architecture, Transformer& model) {
  const bool all = config.flag({"use_bias", "bias"}, architecture.biases);
  const bool attention = config.flag({"attention_bias", "add_qkv_bias", "qkv_bias", "use_qkv_bias"},
                                     architecture.biases || architecture.qkv_biases);
  const bool mlp = config.flag({"mlp_bias"}, all);
  model.biases = attention && mlp;
  model.qkv_biases = attention && !mlp;
  const bool says_attention = config.find({"attention_bias"}) != nullptr;
  if (model.qkv_biases && says_attention) {
    config.assume("attention_bias without mlp_bias: taken as biases of the QKV projection only");
  }
  if (!attention && mlp) {
    config.assume("biases of the MLP without those of attention are not counted");
  }
}

// The layers that attend in full among those with a window, from a list of layer types.
void read_layer_types(Config& config, const Json& types, Transformer& model) {
  int full = 0;
  int first_full = 0;
  for (int layer = 0; layer < static_cast<int>(types.size()); ++layer) {
    if (types[static_cast<std::size_t>(layer)] != "full_attention") continue;
    if (full++ == 0) first_full = layer;
  }
  const int count = static_cast<int>(types.size());
  if (full == count) model.sliding_window = 0;
  if (full == 0 || full == count) return;
  model.full_attention_every = first_full + 1;
  if (full != count / model.full_attention_every) {
    model.full_attention_every = std::max(1, count / full);
    config.assume(fmt::format("layer_types is not periodic: each {}th layer attends in full",
                              model.full_attention_every));
  }
}

void read_window(Config& config, const Architecture& architecture, Transformer& model) {
  if (!config.flag({"use_sliding_window"}, true)) return;
  model.sliding_window = config.small_count({"sliding_window", "attention_chunk_size"}, 0);
  if (model.sliding_window == 0) return;
  model.full_attention_every =
      config.small_count({"sliding_window_pattern"}, architecture.full_attention_every);
  const Json* types = config.find({"layer_types"});
  if (types != nullptr && types->is_array() && !types->empty()) {
    read_layer_types(config, *types, model);
  }
}

void read_dense_layers(Config& config, Transformer& model) {
  model.dense_layers = config.small_count({"first_k_dense_replace"}, 0);
  const Json* step = config.find({"decoder_sparse_step", "interleave_moe_layer_step"});
  const Json* frequency = config.find({"moe_layer_freq"});
  if (step != nullptr) {
    model.moe_every =
        std::max(1, config.small_count({"decoder_sparse_step", "interleave_moe_layer_step"}, 1));
  } else if (frequency != nullptr && *frequency != 1) {
    config.assume("moe_layer_freq is not 1: every layer beyond the leading dense ones is MoE");
  }
  const Json* dense = config.find({"mlp_only_layers"});
  if (dense == nullptr || !dense->is_array() || dense->empty()) return;
  model.dense_layers = static_cast<int>(dense->size());
  config.assume(fmt::format("mlp_only_layers: the first {} layers are dense", dense->size()));
}

void read_shared_experts(Config& config, Transformer& model) {
  model.shared_experts = config.small_count({"n_shared_experts", "num_shared_experts"}, 0);
  model.shared_expert_ffn_size = model.expert_ffn_size;
  const std::int64_t whole =
      config.count({"shared_expert_intermediate_size", "shared_intermediate_size"}, 0);
  if (whole > 0) {
    model.shared_experts = 1;
    model.shared_expert_ffn_size = whole;
    config.assume("the gate of the shared expert (hidden_size a layer) is not counted");
  } else if (config.find({"intermediate_size_mlp"}) != nullptr) {  // Llama 4
    model.shared_experts = 1;
  }
}

void read_experts(Config& config, Transformer& model) {
  model.experts = config.small_count(
      {"num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"}, 0);
  if (model.experts == 0) return;
  model.experts_per_token = config.required(
      {"num_experts_per_tok", "experts_per_token", "moe_topk", "moe_k", "moe_top_k"});
  model.expert_ffn_size = config.count({"moe_intermediate_size", "expert_ffn_hidden_size"},
                                       config.count({"intermediate_size", "ffn_hidden_size"}, 0));
  model.router_correction_bias =
      config.text("topk_method") == "noaux_tc" || config.text("model_type") == "glm4_moe";
  read_shared_experts(config, model);
  read_dense_layers(config, model);
}

void read_decoder(Config& config, Transformer& model) {
  refuse_other_networks(config);
  refuse_other_layers(config);
  const Architecture& architecture = architecture_of(config);
  model.layers = config.required({"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  model.hidden_size = config.required({"hidden_size", "n_embd", "n_embed", "d_model"});
  model.vocabulary = config.required({"vocab_size", "padded_vocab_size"});
  model.ffn_size = config.count(
      {"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"}, 0);
  model.norm = architecture.layer_norm ? Norm::layer_norm : Norm::rms_norm;
  model.gated_mlp = !architecture.plain_mlp;
  model.tied_embeddings = config.flag({"tie_word_embeddings"}, architecture.tied);
  model.learned_positions = architecture.learned_positions;
  model.qk_norm = config.flag({"use_qk_norm", "qk_layernorm"}, architecture.qk_norm);
  model.attention_sinks = config.text("model_type") == "gpt_oss";
  read_attention(config, model);
  read_biases(config, architecture, model);
  read_window(config, architecture, model);
  read_experts(config, model);
  if (model.learned_positions) {
    config.assume("the position table has sequence_length rows, whatever the config's maximum");
  }
  if (config.small_count({"num_nextn_predict_layers"}, 0) > 0) {
    config.assume("the multi-token-prediction head is not planned or counted");
  }
}

// "llama-3.1-8b" of llama-3.1-8b/config.json and of llama-3.1-8b.config.json.
std::string name_of(const std::filesystem::path& file) {
  if (file.filename() == "config.json") return file.parent_path().filename().string();
  const std::filesystem::path stem = file.stem();
  return stem.extension() == ".config" ? stem.stem().string() : stem.string();
}

// MPT and DBRX say some of their sizes in parts of the config.
Json flattened(const Json& config) {
  Json flat = config;
  for (const char* part : {"attn_config", "ffn_config"}) {
    const auto found = config.find(part);
    if (found == config.end() || !found->is_object()) continue;
    for (const auto& [key, value] : found->items()) {
      if (!flat.contains(key)) flat[key] = value;
    }
  }
  return flat;
}

Expected<ImportedModel> read_config(const OpenDocument& document) {
  if (!document.value.is_object()) {
    return document.root().error(
        fmt::format("found {}; allowed: a Hugging Face config", shown(document.value)));
  }
  const Json value = flattened(document.value);
  Config whole(value, document.root());
  const Json* tower = whole.find({"text_config", "llm_config", "language_config"});
  const bool nested = tower != nullptr && tower->is_object();
  Config config = nested ? Config(*tower, document.root() / "text_config") : std::move(whole);
  ImportedModel imported;
  imported.model.name = name_of(document.document.file);
  if (nested) config.assume("only the text tower is planned and counted");
  read_decoder(config, imported.model);
  if (config.error()) return tl::unexpected(*config.error());
  if (auto done = complete(imported.model, config.place()); !done) {
    return tl::unexpected(done.error());
  }
  imported.assumptions = std::move(config.assumptions);
  return imported;
}

}  // namespace

Expected<ImportedModel> import_huggingface(const std::string& path, const Place& place) {
  const auto opened = open_path(path, place);
  return opened ? read_config(**opened) : tl::unexpected(opened.error());
}

Expected<ImportedModel> read_huggingface(const std::filesystem::path& file) {
  const auto opened = open_file(file);
  return opened ? read_config(**opened) : tl::unexpected(opened.error());
}

Expected<ImportedModel> parse_huggingface(std::string_view text, const std::string& name) {
  auto value = parse_json(text);
  if (!value) {
    return failure(fmt::format("{}: {}", name, value.error().where), value.error().message);
  }
  const OpenDocument document{{name, name, nullptr}, *std::move(value)};
  return read_config(document);
}

}  // namespace trainyard
