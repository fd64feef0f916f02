#include "scenarios/huggingface/unread_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string_view>

#include "scenarios/huggingface/other_networks.h"

namespace trainyard {
namespace {

// Whole words in a key's name, and what they tell of.
struct Telling {
  std::string_view words;
  std::string_view means;
  bool by_layer_types = false;  // about layers that `layer_types` would list
};

constexpr std::string_view kExperts = "experts";
constexpr std::string_view kConvolutions = "convolutions";
constexpr std::string_view kCross = "layers of cross attention";

constexpr auto kTellings = std::to_array<Telling>({
    {"expert", kExperts},
    {"experts", kExperts},
    {"moe", kExperts},
    {"mamba", kRecurrent, true},
    {"mamba2", kRecurrent, true},
    {"ssm", kRecurrent, true},
    {"lru", kRecurrent, true},
    {"rwkv", kRecurrent, true},
    {"recurrent", kRecurrent, true},
    {"retention", kRecurrent, true},
    {"deltanet", kRecurrent, true},
    {"hybrid", kRecurrent, true},
    {"linear_attn", kRecurrent, true},
    {"linear_attention", kRecurrent, true},
    {"linear_key", kRecurrent, true},
    {"linear_value", kRecurrent, true},
    {"conv", kConvolutions, true},
    {"conv1d", kConvolutions, true},
    {"conv2d", kConvolutions, true},
    {"cla", kSharedKeys},
    {"cross_layer", kSharedKeys},
    {"cross_attn", kCross},
    {"cross_attention", kCross},
});

// Words of expert keys about routing, training and kernels, which change no layer's size.
constexpr auto kOfRouting =
    std::to_array<std::string_view>({"act",         "activation", "assignment", "aux",
                                     "balance",     "balancing",  "bias",       "capacity",
                                     "coef",        "coeff",      "drop",       "dropped",
                                     "dropping",    "dropout",    "dispatch",   "dispatcher",
                                     "dtype",       "fn",         "func",       "function",
                                     "fusion",      "gate",       "gating",     "gemm",
                                     "group",       "grouped",    "impl",       "implementation",
                                     "jitter",      "lambda",     "logits",     "loss",
                                     "noise",       "norm",       "normalize",  "overlap",
                                     "parallel",    "prob",       "probs",      "renormalize",
                                     "parallelism", "router",     "routing",    "scale",
                                     "scaling",     "score",      "scoring",    "softmax",
                                     "token",       "tokens",     "topk_method"});

// Keys that say only that there are experts.
constexpr auto kThereAreExperts =
    std::to_array<std::string_view>({"use_moe", "is_moe", "enable_moe", "use_mixed_mlp_moe"});

constexpr auto kOfNoLayer = std::to_array<std::string_view>({"id",
                                                             "ids",
                                                             "id2label",
                                                             "label2id",
                                                             "dtype",
                                                             "version",
                                                             "architectures",
                                                             "auto_map",
                                                             "name",
                                                             "cache",
                                                             "dropout",
                                                             "pdrop",
                                                             "drop",
                                                             "initializer",
                                                             "init",
                                                             "std",
                                                             "rope",
                                                             "rotary",
                                                             "alibi",
                                                             "position",
                                                             "positions",
                                                             "max",
                                                             "ctx",
                                                             "length",
                                                             "eps",
                                                             "epsilon",
                                                             "output",
                                                             "return_dict",
                                                             "loss",
                                                             "coef",
                                                             "scale",
                                                             "scaling",
                                                             "multiplier",
                                                             "logit",
                                                             "logits",
                                                             "softcap",
                                                             "softcapping",
                                                             "quantization_config",
                                                             "tokenizer",
                                                             "params",
                                                             "problem_type",
                                                             "summary",
                                                             "temperature",
                                                             "top_p",
                                                             "penalty",
                                                             "sample",
                                                             "implementation",
                                                             "flash",
                                                             "training",
                                                             "pretraining_tp",
                                                             "torchscript",
                                                             "model_type",
                                                             "token",
                                                             "tokens",
                                                             "clip_qkv",
                                                             "norm_topk_prob",
                                                             "scoring_func",
                                                             "topk_method"});

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Whether the key has `words` between two of its separators or ends.
bool has_words(std::string_view key, std::string_view words) {
  for (std::size_t at = key.find(words); at != key.npos; at = key.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    const bool starts = at == 0 || !is_of_word(key[at - 1]);
    if (starts && (end == key.size() || !is_of_word(key[end]))) return true;
  }
  return false;
}

bool has_any(std::string_view key, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [key](std::string_view some) { return has_words(key, some); });
}

bool tells_of_experts(std::string_view key, ExpertsRead experts) {
  if (experts == ExpertsRead::none || has_any(key, kOfRouting)) return false;
  return experts == ExpertsRead::not_said ||
         std::ranges::find(kThereAreExperts, key) == kThereAreExperts.end();
}

}  // namespace

void refuse_unread_layers(HuggingFaceConfig& config, ExpertsRead experts) {
  const bool has_layer_types = config.has("layer_types");
  for (const std::string& key : config.unread()) {
    for (const Telling& telling : kTellings) {
      if (!has_words(key, telling.words) || (telling.by_layer_types && has_layer_types)) continue;
      if (telling.means == kExperts && !tells_of_experts(key, experts)) continue;
      return config.refuse(
          config.place() / key,
          fmt::format("found {} in a network of model_type {}, which is not known: {} would be "
                      "left out; allowed: a known model_type, or none of them",
                      shown(*config.find({key})),
                      shown(std::string_view(config.text("model_type"))), telling.means));
    }
  }
}

std::vector<std::string> keys_left_out(const HuggingFaceConfig& config) {
  std::vector<std::string> keys = config.unread();
  std::erase_if(keys, [](const std::string& key) { return has_any(key, kOfNoLayer); });
  return keys;
}

}  // namespace trainyard
