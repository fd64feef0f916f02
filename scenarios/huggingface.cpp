#include "scenarios/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "scenarios/fields/documents.h"
#include "scenarios/fields/reference.h"
#include "scenarios/huggingface/architectures.h"
#include "scenarios/huggingface/config.h"
#include "scenarios/huggingface/differences.h"
#include "scenarios/huggingface/layer_lists.h"
#include "scenarios/huggingface/other_networks.h"
#include "scenarios/huggingface/parallel_blocks.h"
#include "scenarios/huggingface/reading.h"
#include "scenarios/huggingface/unread_keys.h"

namespace trainyard {
namespace {

using KeyNames = HuggingFaceConfig::Keys;

constexpr Architecture kLlamaLike{};

// The largest values, as in a model document.
constexpr double kMostLayers = 1e5;
constexpr double kMostVocabulary = 1e8;

// The model_type; some configs are recognised by their class instead.
std::string type_of(HuggingFaceConfig& config) {
  std::string type = config.text("model_type");
  // The first ChatGLM has only its name in common with the later ones.
  if (type == "chatglm" && config.flag({"position_encoding_2d"}, false)) return "chatglm-6b";
  const std::string_view later = type_of_class(type);
  if (!later.empty()) return std::string(later);
  const Json* classes = config.find({"architectures"});
  if (find_architecture(type) != nullptr || classes == nullptr || !classes->is_array()) return type;
  for (const Json& name : *classes) {
    if (!name.is_string()) continue;
    const std::string& network_class = name.get_ref<const std::string&>();
    const std::string_view known = type_of_class(network_class);
    if (!known.empty()) return std::string(known);
    if (type.empty()) type = family_of_class(network_class);
  }
  return type;
}

const Architecture& architecture_of(HuggingFaceConfig& config) {
  const Architecture* found = find_architecture(type_of(config));
  return found != nullptr ? *found : kLlamaLike;
}

void refuse_network(HuggingFaceConfig& config, std::string_view what) {
  const std::string type = config.text("model_type");
  config.refuse(config.place(),
                fmt::format("found a {} network ({}); allowed: a dense, MoE or MLA decoder",
                            shown(std::string_view(type)), what));
}

void refuse_other_networks(HuggingFaceConfig& config) {
  const std::string type = type_of(config);
  const std::string_view reason = reason_to_refuse(type);
  if (!reason.empty()) return refuse_network(config, reason);
  if (config.flag({"is_encoder_decoder"}, false)) {
    return refuse_network(config, "an encoder and a decoder");
  }
  if (type == "doge" && config.flag({"is_moe"}, false)) {
    return refuse_network(config, "experts of one neuron each");
  }
  // A list of layer types overrides a family's keys: all of its layers may be attention.
  const bool has_layer_types = config.has("layer_types");
  const Architecture* family = find_architecture(type);
  if (family != nullptr && family->recurrent && !has_layer_types) {
    return refuse_network(config, "recurrent layers, unless layer_types says otherwise");
  }
  const Json* segments = config.find({"type_vocab_size"});
  if (family == nullptr && segments != nullptr && says_something(*segments)) {
    return refuse_network(config, "type_vocab_size: an encoder of segments");
  }
  for (const ForeignKey& foreign : foreign_keys()) {
    if (has_layer_types && foreign.means == kRecurrent) continue;
    const Json* value = config.find({foreign.key});
    if (value != nullptr && says_something(*value)) {
      return refuse_network(config, fmt::format("{}: {}", foreign.key, foreign.means));
    }
  }
}

// Whether the config's width of the MLP is that of gate and up projection together.
bool holds_gate_and_up(const Architecture& architecture) {
  return architecture.type == "qwen" || architecture.type == "molmo" ||
         architecture.type == "hf_olmo";
}

void read_ffn(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  Transformer& model = reading.model;
  const KeyNames general = {"intermediate_size_mlp",
                            "intermediate_size",
                            "n_inner",
                            "ffn_hidden_size",
                            "ffn_dim",
                            "ff_intermediate_size",
                            "dense_ffn_hidden_size",
                            "mlp_hidden_size",
                            "inner_hidden_size",
                            "d_ff",
                            "dff",
                            "dim_ff"};
  const KeyNames of_llama4 = {"intermediate_size_mlp"};  // the other key is for its experts
  const bool llama4 = reading.architecture.type == "llama4_text";
  const auto& keys = llama4 ? of_llama4 : general;
  model.ffn_size = config.count(keys, 0);
  if (model.ffn_size == 0 && reading.architecture.type == "hf_olmo") {
    model.ffn_size = config.count({"mlp_ratio"}, 4, 1e3) * model.hidden_size;
  }
  if (holds_gate_and_up(reading.architecture)) model.ffn_size /= 2;
  if (model.ffn_size > 0) return;
  const std::int64_t ratio = config.count({"expansion_ratio"}, 4, 1e3);  // MPT
  model.ffn_size = ratio * model.hidden_size;
  const std::int64_t by_class = reading.architecture.sizes.ffn_size;
  if (by_class > 0 && !config.says_none(keys)) {
    const std::string_view key = llama4 ? "intermediate_size_mlp" : "intermediate_size";
    model.ffn_size = of_class(reading, key, static_cast<int>(by_class));
  } else if (!is_known_family(reading)) {
    config.assume("intermediate_size is not said: 4 times hidden_size");
  }
}

void read_shared_experts(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  Transformer& model = reading.model;
  const KeyNames keys = {"n_shared_experts", "num_shared_experts", "num_shared_expert",
                         "moe_num_shared_experts", "moe_shared_primary_experts"};
  model.shared_experts =
      config.small_count(keys, config.says_none(keys) ? 0 : reading.architecture.experts.shared);
  model.shared_expert_ffn_size = model.expert_ffn_size;
  if (reading.architecture.type == "arctic") model.shared_expert_ffn_size = model.hidden_size;
  const KeyNames widths = {"shared_expert_intermediate_size", "shared_intermediate_size"};
  const std::int64_t by_class =
      config.says_none(widths) ? 0 : reading.architecture.experts.shared_ffn_size;
  const std::int64_t whole = config.find(widths) == nullptr && by_class > 0
                                 ? of_class(reading, *widths.begin(), static_cast<int>(by_class))
                                 : config.count(widths, 0);
  if (whole > 0) {
    model.shared_experts = 1;
    model.shared_expert_ffn_size = whole;
  }
  if (config.flag({"residual_moe"}, false)) {  // Grok 2: the dense MLP beside the experts
    model.shared_experts = 1;
    model.shared_expert_ffn_size = model.ffn_size;
  }
}

// Llama 4: whether its list of layers with experts is empty or, without a list, its step is 0.
bool has_no_moe_layers(HuggingFaceConfig& config) {
  const Json* layers = config.list("moe_layers");
  if (layers != nullptr) return layers->empty();
  const Json* step = config.find({"interleave_moe_layer_step"});
  return step != nullptr && *step == 0;
}

int read_expert_count(Reading& reading) {
  const KeyNames keys = {"num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts",
                         "moe_num_primary_experts"};
  HuggingFaceConfig& config = reading.config;
  // Some configs have the key without using experts (Doge's; with is_moe it is refused).
  const std::string_view type = reading.architecture.type;
  const bool off = type == "doge" || config.says_false({"use_moe", "is_moe", "enable_moe"}) ||
                   (type == "llama4_text" && has_no_moe_layers(config));
  const bool none = off || config.says_none(keys);
  const bool found = config.find(keys) != nullptr && !none;
  reading.experts = found || none ? ExpertsRead::none : ExpertsRead::not_said;
  if (found) return config.small_count(keys, 0);
  const int by_class = reading.architecture.experts.experts;
  return by_class == 0 || none ? 0 : of_class(reading, *keys.begin(), by_class);
}

void read_experts(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  Transformer& model = reading.model;
  const Architecture& architecture = reading.architecture;
  model.experts = read_expert_count(reading);
  if (model.experts <= 1) {  // a single expert is an MLP (Hunyuan's dense networks)
    model.experts = 0;
    if (architecture.type == "granitemoehybrid") {
      model.ffn_size = config.count({"shared_intermediate_size"}, model.ffn_size);
    }
    return;
  }
  reading.experts = ExpertsRead::planned;
  const KeyNames per_token = {"num_experts_per_tok",
                              "num_experts_per_token",
                              "experts_per_token",
                              "moe_topk",
                              "moe_k",
                              "moe_top_k",
                              "moe_num_active_primary_experts"};
  const int by_class = architecture.experts.per_token;
  model.experts_per_token = by_class > 0 && config.find(per_token) == nullptr
                                ? of_class(reading, *per_token.begin(), by_class)
                                : config.required(per_token);
  const KeyNames widths = {"moe_intermediate_size", "expert_ffn_hidden_size",
                           "moe_ffn_hidden_size"};
  const std::int64_t ffn_by_class = architecture.experts.ffn_size;
  const std::int64_t otherwise = config.count({"intermediate_size"}, model.ffn_size);
  model.expert_ffn_size = config.find(widths) == nullptr && ffn_by_class > 0
                              ? of_class(reading, *widths.begin(), static_cast<int>(ffn_by_class))
                              : config.count(widths, otherwise);
  model.router_correction_bias =
      config.text("topk_method") == "noaux_tc" || architecture.router_correction_bias;
  read_shared_experts(reading);
  read_moe_layers(config, architecture, model);
}

// Further hints on norm and MLP if the family is not known: squared ReLU has no gate (So et al.
// 2021), nor has GELU with LayerNorm, as in GPT-2.
void read_hints(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  const std::string activation =
      config.text(config.has("hidden_act") ? "hidden_act" : "activation_function");
  if (is_known_family(reading)) return;
  const auto is_one_of = [&](KeyNames names) {
    return std::ranges::find(names, activation) != names.end();
  };
  const bool rms = config.find({"rms_norm_eps", "norm_eps"}) != nullptr;
  const bool layer =
      config.find({"layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon"}) != nullptr;
  if (layer && !rms) reading.model.norm = Norm::layer_norm;
  const bool gelu = is_one_of({"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"});
  if (is_one_of({"relu", "relu2", "relu_squared", "squared_relu"}) ||
      (gelu && reading.model.norm == Norm::layer_norm)) {
    reading.model.gated_mlp = false;
  }
}

void read_norms(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  const Architecture& architecture = reading.architecture;
  reading.model.norm = architecture.norm == NormWeights::layer ? Norm::layer_norm : Norm::rms_norm;
  if (architecture.norm == NormWeights::layer_no_bias) {
    config.assume("LayerNorm without biases is planned as RMSNorm, which has as many parameters");
  }
  NetworkFacts& facts = reading.facts;
  facts.norms = architecture.norms;
  facts.final_norm = architecture.final_norm && config.flag({"do_layer_norm_before"}, true) &&
                     !config.flag({"_remove_final_layer_norm"}, false);
  if (architecture.type == "stablelm" && config.flag({"use_parallel_residual"}, false)) {
    facts.norms = 1;
  }
  if (architecture.type == "hf_olmo" && !config.flag({"layer_norm_with_affine"}, true)) {
    facts.norms = 0;
    facts.final_norm = false;
  }
  if (architecture.type == "hyperclovax" && !config.flag({"use_post_norm"}, true)) facts.norms = 2;
  if (architecture.type == "falcon" && config.flag({"parallel_attn"}, true)) {
    const int parallel = has_new_decoder(config) ? 2 : 1;
    facts.norms = config.small_count({"num_ln_in_parallel_attn"}, parallel);
  }
}

void read_sizes(Reading& reading) {
  Transformer& model = reading.model;
  model.layers = read_size(reading, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"},
                           &ClassSizes::layers, kMostLayers);
  model.hidden_size =
      read_size(reading, {"hidden_size", "n_embd", "n_embed", "d_model"}, &ClassSizes::hidden_size);
  model.vocabulary = read_size(reading, {"vocab_size", "padded_vocab_size"},
                               &ClassSizes::vocabulary, kMostVocabulary);
  const std::string_view type = reading.architecture.type;
  if (type == "molmo" || type == "hf_olmo") {  // their embedding has more rows than the tokenizer
    model.vocabulary = reading.config.count({"embedding_size"}, model.vocabulary, kMostVocabulary);
  }
  const int width = reading.config.small_count({"word_embed_proj_dim"}, model.hidden_size);
  reading.facts.embedding_width = width == model.hidden_size ? 0 : width;
}

void read_decoder(Reading& reading, bool tied) {
  HuggingFaceConfig& config = reading.config;
  Transformer& model = reading.model;
  const Architecture& architecture = reading.architecture;
  read_sizes(reading);
  if (config.error()) return;  // the lists below need the number of layers
  refuse_other_layers(config, model.layers);
  const bool mpt_glu = architecture.type == "mpt" && config.text("ffn_type") == "mptglu";
  model.gated_mlp = !architecture.plain_mlp || mpt_glu;
  model.tied_embeddings = tied;
  model.learned_positions = architecture.learned_positions;
  read_norms(reading);
  read_attention(reading);
  read_biases(reading);
  read_window(config, architecture, model);
  read_ffn(reading);
  read_experts(reading);
  read_hints(reading);
  if (!is_known_family(reading)) refuse_unread_layers(config, reading.experts);
}

// Notes what multi-token prediction would add. Published parameter counts are without it, and it is
// usually left out in further training.
void say_what_mtp_adds(Reading& reading) {
  const int layers = reading.config.small_count({"num_nextn_predict_layers", "num_mtp_modules"}, 0);
  if (layers == 0 || reading.config.error()) return;
  Transformer with = reading.model;
  with.mtp_layers = layers;
  const double more = parameter_count(with, 0) - parameter_count(reading.model, 0);
  reading.config.assume(fmt::format(
      "multi-token prediction is not planned or counted; \"mtp_layers\": {} adds it, {:.0f} "
      "parameters",
      layers, more));
}

std::string_view biases_taken(const Reading& reading) {
  const LinearBiases& biases = reading.facts.biases;
  if (reading.model.biases) return "biases";
  return biases.qkv || biases.output || biases.mlp ? "some biases" : "no biases";
}

// Notes, before the other assumptions about the tower, as what an unknown network is taken.
void say_what_is_taken(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  const Transformer& model = reading.model;
  std::string taken = fmt::format(
      "model_type {} is not known: taken as Llama-like, but for what the config says ({}, {}, {}, "
      "{} MLP)",
      shown(std::string_view(config.text("model_type"))),
      model.tied_embeddings ? "the embedding as its head" : "its own head", biases_taken(reading),
      model.norm == Norm::rms_norm ? "RMSNorm" : "LayerNorm", model.gated_mlp ? "gated" : "plain");
  constexpr std::size_t kMostNamed = 12;
  std::vector<std::string> left_out = keys_left_out(config);
  const std::size_t found = left_out.size();
  if (found > kMostNamed) left_out.resize(kMostNamed);
  for (std::string& key : left_out) key = shown(std::string_view(key));
  if (found > 0) taken += fmt::format("; not read: {}", fmt::join(left_out, ", "));
  if (found > kMostNamed) taken += fmt::format(" and {} more", found - kMostNamed);
  const auto first = config.assumptions().begin() + (reading.tower ? 1 : 0);
  config.assumptions().insert(first, taken);
}

void say_what_is_assumed(Reading& reading) {
  HuggingFaceConfig& config = reading.config;
  if (is_known_family(reading) && !config.has("model_type")) {
    config.assume(
        fmt::format("no model_type: taken as {}, by its class", shown(reading.architecture.type)));
  }
  if (!reading.of_class.empty()) {
    config.assume(fmt::format("not said, as the configuration class has it: {}",
                              fmt::join(reading.of_class, ", ")));
  }
  if (reading.model.learned_positions) {
    config.assume("the position table has sequence_length rows, whatever the config's maximum");
  }
  say_what_mtp_adds(reading);
  if (has_parallel_blocks(config, reading.architecture)) {
    config.assume(
        "attention and MLP, side by side in the network, are planned one after the other: with "
        "tensor parallelism as two exchanges a layer and direction in the place of one, too slow");
  }
  if (!reading.architecture.note.empty()) {
    config.assume(std::string(reading.architecture.note));
  }
  if (!is_known_family(reading)) say_what_is_taken(reading);  // last, when everything has been read
}

std::string share_of(double part, double whole) {
  const double percent = 100 * part / whole;
  return percent < 0.001 ? "under 0.001 %" : fmt::format("{:.2g} %", percent);
}

void say_what_differs(Reading& reading) {
  const double whole = parameter_count(reading.model, 0);
  for (const ParameterDifference& difference :
       parameter_differences(reading.model, reading.architecture, reading.facts)) {
    const double parameters = std::abs(difference.parameters);
    reading.config.assume(fmt::format(
        "{}: {:.0f} parameters ({}) are {}", difference.what, parameters,
        share_of(parameters, whole),
        difference.parameters > 0 ? "not planned or counted" : "planned that it does not have"));
  }
}

// The network's name: "llama-3.1-8b" for llama-3.1-8b/config.json and llama-3.1-8b.config.json.
std::string name_of(const std::filesystem::path& file) {
  if (file.filename() == "config.json") return file.parent_path().filename().string();
  const std::filesystem::path stem = file.stem();
  return stem.extension() == ".config" ? stem.stem().string() : stem.string();
}

// MPT and DBRX have some of their sizes in parts of the config.
Json flattened(const Json& config) {
  Json flat = config;
  for (const char* part : {"attn_config", "ffn_config"}) {
    const auto found = config.find(part);
    if (found == config.end() || !found->is_object()) continue;
    for (const auto& [key, value] : found->items()) {
      if (!flat.contains(key)) flat[key] = value;
    }
    flat.erase(part);
  }
  return flat;
}

// The part of a multi-modal config that describes the text decoder, and its place.
struct Tower {
  const Json* json;
  Place place;
};
Tower text_tower(Tower tower) {
  constexpr auto kParts = std::to_array<std::string_view>(
      {"thinker_config", "text_config", "llm_config", "language_config"});
  for (const std::string_view part : kParts) {
    const auto found = tower.json->find(part);
    if (found == tower.json->end() || !found->is_object()) continue;
    tower = {&*found, tower.place / part};
  }
  return tower;
}

Expected<ImportedModel> read_config(const OpenDocument& document) {
  if (!document.value.is_object()) {
    return document.root().error(
        fmt::format("found {}; allowed: a Hugging Face config", shown(document.value)));
  }
  const Json value = flattened(document.value);
  HuggingFaceConfig whole(value, document.root());
  const Tower tower = text_tower({&value, document.root()});
  const bool nested = tower.json != &value;
  HuggingFaceConfig config(*tower.json, tower.place);
  ImportedModel imported;
  imported.model.name = name_of(document.document.file);
  if (nested) config.assume("only the text tower is planned and counted");
  refuse_other_networks(config);
  const Architecture& architecture = architecture_of(config);
  // For an unknown class: PretrainedConfig's default is true, and other values are always written.
  const bool by_class = architecture.type.empty() || architecture.tied;
  const KeyNames tying = {"tie_word_embeddings", "weight_tying"};
  const bool tied = config.flag(tying, whole.flag(tying, by_class));
  Reading reading{config, architecture, nested, imported.model, {}, {}};
  read_decoder(reading, tied);
  for (const auto* part : {&whole, &config}) {
    if (part->error()) return tl::unexpected(*part->error());
  }
  if (auto done = complete(imported.model, config.place()); !done) {
    return tl::unexpected(done.error());
  }
  say_what_is_assumed(reading);
  say_what_differs(reading);
  if (config.error()) return tl::unexpected(*config.error());
  imported.assumptions = std::move(config.assumptions());
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
