#include "scenarios/huggingface/other_networks.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "scenarios/huggingface/architectures.h"

namespace trainyard {
namespace {

struct NetworkClass {
  std::string_view name;
  std::string_view type;
};
// xai-org/grok-2 has the model_type "git"; PowerInfer/SmallThinker-21BA3B-Instruct has none;
// Falcon's first releases had other ones.
constexpr auto kClasses = std::to_array<NetworkClass>({
    {"Grok1ForCausalLM", "grok-1"},
    {"SmallThinkerForCausalLM", "smallthinker"},
    {"RefinedWeb", "falcon"},
    {"RefinedWebModel", "falcon"},
});

struct OtherNetwork {
  std::string_view part;  // part of the model_type
  std::string_view reason;
  bool whole = false;  // too short to be searched in longer names
};
constexpr std::string_view kEncoder = "an encoder, or encoder and decoder";
constexpr std::string_view kUnlikeLayers = "layers of unlike sizes";
constexpr std::string_view kLoops = "layers that a pass goes through several times";
constexpr auto kOtherNetworks = std::to_array<OtherNetwork>({
    {"bert", kEncoder},
    {"t5", kEncoder},
    {"bart", kEncoder},
    {"electra", kEncoder},
    {"esm", kEncoder, true},
    {"siglip", kEncoder},
    {"xlnet", kEncoder},
    {"whisper", kEncoder},
    {"pegasus", kEncoder},
    {"mpnet", kEncoder},
    {"longformer", kEncoder},
    {"big_bird", kEncoder},
    {"layoutlm", kEncoder},
    {"data2vec", kEncoder},
    {"roformer", kEncoder},
    {"nystromformer", kEncoder},
    {"nezha", kEncoder},
    {"funnel", kEncoder},
    {"canine", kEncoder},
    {"tapas", kEncoder},
    {"wav2vec2", kEncoder},
    {"prophetnet", kEncoder},
    {"m2m_100", kEncoder},
    {"nllb", kEncoder},
    {"switch_transformers", kEncoder},
    {"ernie", kEncoder, true},
    {"ernie_m", kEncoder, true},
    {"xlm", kEncoder, true},
    {"lilt", kEncoder, true},
    {"luke", kEncoder, true},
    {"fnet", kEncoder, true},
    {"mra", kEncoder, true},
    {"yoso", kEncoder, true},
    {"marian", kEncoder, true},
    {"led", kEncoder, true},
    {"fsmt", kEncoder, true},
    {"new", kEncoder, true},  // GTE
    {"vit", "a vision network"},
    {"clip", "a vision network"},
    {"mamba", kRecurrent},
    {"rwkv", kRecurrent},
    {"jamba", kRecurrent},
    {"zamba", kRecurrent},
    {"bamba", kRecurrent},
    {"nemotron_h", kRecurrent},
    {"falcon_h1", kRecurrent},
    {"recurrent", kRecurrent},
    {"qwen3_next", kRecurrent},
    {"qwen3_5", kRecurrent},
    {"minimax_text", kRecurrent},
    {"kimi_linear", kRecurrent},
    {"bailing_hybrid", kRecurrent},
    {"olmo_hybrid", kRecurrent},
    {"hybrid_", kRecurrent},
    {"lfm2", kRecurrent},
    {"lfm3", kRecurrent},
    {"xlstm", kRecurrent},
    {"plamo2", kRecurrent},
    {"phi4flash", kRecurrent},
    {"zaya", kRecurrent},
    {"inkling", kRecurrent},
    {"retnet", kRecurrent},
    {"samba", kRecurrent},
    {"linear_attn", kRecurrent},
    {"delta_net", kRecurrent},
    {"deltanet", kRecurrent},
    {"deltaproduct", kRecurrent},
    {"hgrn", kRecurrent},
    {"lightnet", kRecurrent},
    {"mesa_net", kRecurrent},
    {"comba", kRecurrent},
    {"rodimus", kRecurrent},
    {"mom", kRecurrent, true},
    {"ttt", kRecurrent, true},
    {"gla", kRecurrent, true},
    {"gsa", kRecurrent, true},
    {"kda", kRecurrent, true},
    {"abc", kRecurrent, true},
    {"yuan", "convolutions before attention", true},
    {"hyena", "convolutions in the place of attention"},
    {"ouro", kLoops, true},
    {"hrm_text", kLoops, true},
    {"mllama", "layers of cross attention"},
    {"moshi", "layers of cross attention"},
    {"blt", "layers of cross attention"},
    {"jetmoe", "experts of attention heads"},
    {"longcat", "two attentions and MLPs beside each layer's experts"},
    {"gemma3n", kUnlikeLayers},
    {"gemma4", kUnlikeLayers},
    {"openelm", kUnlikeLayers},
    {"deci", kUnlikeLayers},
    {"nemotron-nas", kUnlikeLayers},
    {"mimo_v2", kUnlikeLayers},
    {"deepseek_v4", "compressed attention"},
});

constexpr auto kForeignKeys = std::to_array<ForeignKey>({
    {"cross_attention_layers", "layers of cross attention"},
    {"add_cross_attention", "layers of cross attention"},
    {"block_configs", kUnlikeLayers},
    {"num_key_value_heads_per_layer", kUnlikeLayers},
    {"num_kv_shared_layers", kSharedKeys},
    {"use_cla", kSharedKeys},
    {"share_q_dim", "queries by way of a narrower projection"},
    {"hidden_size_per_layer_input", "embeddings of each layer"},
    {"altup_num_inputs", "embeddings of each layer"},
    {"block_types", kRecurrent},
    {"hybrid_override_pattern", kRecurrent},
    {"layers_block_type", kRecurrent},
    {"attn_layer_period", kRecurrent},
    {"linear_attn_config", kRecurrent},
    {"linear_num_key_heads", kRecurrent},
    {"ssm_cfg", kRecurrent},
    {"ssm_state_size", kRecurrent},
    {"mamba_d_state", kRecurrent},
});

// The letters and digits of a name, in lower case.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

}  // namespace

std::string_view type_of_class(std::string_view network_class) {
  const auto* const found = std::ranges::find(kClasses, network_class, &NetworkClass::name);
  return found == kClasses.end() ? std::string_view{} : found->type;
}

std::string family_of_class(std::string_view network_class) {
  constexpr auto kEnds = std::to_array<std::string_view>({"ForCausalLM", "LMHeadModel"});
  const auto* const end = std::ranges::find_if(
      kEnds, [&](std::string_view suffix) { return network_class.ends_with(suffix); });
  if (end == kEnds.end()) return "";
  std::string letters = letters_of(network_class.substr(0, network_class.size() - end->size()));
  for (const Architecture& known : architectures()) {
    if (letters_of(known.type) == letters) return std::string(known.type);
  }
  return letters;
}

std::string_view reason_to_refuse(std::string_view type) {
  if (find_architecture(type) != nullptr) return {};
  const auto* const other = std::ranges::find_if(kOtherNetworks, [&](const OtherNetwork& network) {
    return network.whole ? type == network.part : type.find(network.part) != type.npos;
  });
  return other == kOtherNetworks.end() ? std::string_view{} : other->reason;
}

std::span<const ForeignKey> foreign_keys() { return kForeignKeys; }

}  // namespace trainyard
