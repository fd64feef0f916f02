#include "scenarios/huggingface/layer_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace trainyard {
namespace {

// One entry for each layer: whether it attends in full, or has experts.
using Marks = std::vector<bool>;

int marked(const Marks& marks) { return static_cast<int>(std::ranges::count(marks, true)); }

// The entries that `layer_types` may have.
constexpr auto kSoftmaxLayers = std::to_array<std::string_view>(
    {"full_attention", "attention", "indexed_attention", "sliding_attention", "chunked_attention"});

bool attends_in_full(std::string_view type) {
  return type == "full_attention" || type == "attention" || type == "global";
}

bool is_softmax(const Json& type) {
  return type.is_string() &&
         std::ranges::find(kSoftmaxLayers, type.get_ref<const std::string&>()) !=
             kSoftmaxLayers.end();
}

// The layers that are on, from a list of `off` and `on`, whatever the config calls these.
std::optional<Marks> marks_by_list(HuggingFaceConfig& config, std::string_view key, int layers,
                                   const Json& off, const Json& on) {
  const Json* list = config.layer_list(key, layers);
  if (list == nullptr) return std::nullopt;
  Marks marks;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers); ++layer) {
    const Json& entry = (*list)[layer];
    if (entry != off && entry != on) {
      config.refuse(config.place() / key / layer,
                    fmt::format("found {}; allowed: {}, {}", shown(entry), off.dump(), on.dump()));
      return std::nullopt;
    }
    marks.push_back(entry == on);
  }
  return marks;
}

std::optional<Marks> full_by_layer_types(HuggingFaceConfig& config, int layers) {
  const Json* types = config.layer_list("layer_types", layers);
  if (types == nullptr) types = config.layer_list("attention_layers", layers);  // GPT-Neo
  if (types == nullptr) return std::nullopt;
  Marks full;
  for (int layer = 0; layer < layers; ++layer) {
    const Json& type = (*types)[static_cast<std::size_t>(layer)];
    full.push_back(type.is_string() && attends_in_full(type.get_ref<const std::string&>()));
  }
  return full;
}

// EXAONE 4: a pattern that repeats, such as "LLLG".
std::optional<Marks> full_by_letters(HuggingFaceConfig& config, int layers) {
  const Json* pattern = config.find({"sliding_window_pattern"});
  if (pattern == nullptr || !pattern->is_string()) return std::nullopt;
  const std::string letters = config.text("sliding_window_pattern");
  if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
    config.refuse(config.place() / "sliding_window_pattern",
                  fmt::format("found {}; allowed: a whole number, or L and G", shown(*pattern)));
    return std::nullopt;
  }
  Marks full;
  for (int layer = 0; layer < layers; ++layer) {
    full.push_back(letters[static_cast<std::size_t>(layer) % letters.size()] == 'G');
  }
  return full;
}

// Qwen 2: layers from number `max_window_layers` on have the window.
std::optional<Marks> full_by_first_layers(HuggingFaceConfig& config, int layers) {
  if (!config.has("max_window_layers")) return std::nullopt;
  const int first = config.small_count({"max_window_layers"}, 0);
  Marks full;
  for (int layer = 0; layer < layers; ++layer) full.push_back(layer < first);
  return full;
}

// Llama 4: layers without rotary positions (0 in a list, or each n-th) attend in full.
std::optional<Marks> full_without_positions(HuggingFaceConfig& config, int layers) {
  const Json* list = config.list("no_rope_layers");
  if (list != nullptr && !list->empty()) {
    return marks_by_list(config, "no_rope_layers", layers, 1, 0);
  }
  if (!config.has("no_rope_layer_interval")) return std::nullopt;
  const int every = config.small_count({"no_rope_layer_interval"}, 0);
  Marks full;
  for (int layer = 0; layer < layers; ++layer) {
    full.push_back(every > 0 && (layer + 1) % every == 0);
  }
  return full;
}

// GPT-Neo and CWM: layers 0, n, 2n, … attend in full.
std::optional<Marks> full_by_architecture(const Architecture& architecture, int layers) {
  if (architecture.type != "gpt_neo" && architecture.type != "cwm") return std::nullopt;
  Marks full;
  for (int layer = 0; layer < layers; ++layer) {
    full.push_back(layer % architecture.full_attention_every == 0);
  }
  return full;
}

// SmallThinker: layers with a 1 have the window; by default no layer has.
std::optional<Marks> full_by_layout(HuggingFaceConfig& config, int layers) {
  if (!config.has("sliding_window_layout")) return Marks(static_cast<std::size_t>(layers), true);
  std::optional<Marks> windowed = marks_by_list(config, "sliding_window_layout", layers, 0, 1);
  if (windowed) windowed->flip();
  return windowed;
}

// The layers that attend in full, if the config or its family gives them layer by layer.
std::optional<Marks> full_layers(HuggingFaceConfig& config, const Architecture& architecture,
                                 int layers) {
  auto full = full_by_layer_types(config, layers);
  if (!full && architecture.type == "smallthinker") full = full_by_layout(config, layers);
  if (!full && architecture.type == "llama4_text") full = full_without_positions(config, layers);
  if (!full) full = full_by_letters(config, layers);
  if (!full) full = full_by_first_layers(config, layers);
  return full ? full : full_by_architecture(architecture, layers);
}

bool attends_as(const Transformer& model, const Marks& full) {
  for (int layer = 0; layer < model.layers; ++layer) {
    if (layer_kind(model, layer).sliding == full[static_cast<std::size_t>(layer)]) return false;
  }
  return true;
}

int layers_in_full(int layers, int leading, int every) {
  return leading + layers / every - leading / every;
}

// Plans as many layers in full attention if not the same ones: the shortest period that gives at
// most `count` layers, and as many leading layers as are missing.
void use_as_many_full_layers(HuggingFaceConfig& config, int count, Transformer& model) {
  int every = 2, leading = 0;
  while (model.layers / every > count) ++every;
  while (layers_in_full(model.layers, leading, every) < count) ++leading;
  model.full_attention_every = every;
  model.full_attention_layers = leading;
  const std::string first = leading > 0 ? fmt::format("the first {} and then ", leading) : "";
  config.assume(fmt::format("{} of {} layers attend in full, not each n-th: planned as {}one in {}",
                            count, model.layers, first, every));
}

void use_full_layers(HuggingFaceConfig& config, const Marks& full, Transformer& model) {
  const int count = marked(full);
  if (count == model.layers) model.sliding_window = 0;
  if (count == 0 || count == model.layers) return;
  const auto windowed = std::find(full.begin(), full.end(), false);
  const auto next = std::find(windowed, full.end(), true);
  const auto after = next == full.end() ? next : std::find(next + 1, full.end(), true);
  model.full_attention_layers = static_cast<int>(windowed - full.begin());
  if (next != full.end()) {
    const auto period = after == full.end() ? next + 1 - full.begin() : after - next;
    model.full_attention_every = static_cast<int>(period);
  }
  if (!attends_as(model, full)) use_as_many_full_layers(config, count, model);
}

// The layers from `first` on whose number, counted from `origin`, is divisible by `every`.
Marks moe_by_period(int layers, int first, int every, int origin = 1) {
  Marks moe;
  for (int layer = 0; layer < layers; ++layer) {
    moe.push_back(layer >= first && (layer + origin) % every == 0);
  }
  return moe;
}

// Sets the marks of the layers that a list of their indices names.
void mark(HuggingFaceConfig& config, std::string_view key, bool value, Marks& marks) {
  const Json* list = config.list(key);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Json& layer = (*list)[i];
    const bool fits = layer.is_number_unsigned() && layer.get<std::uint64_t>() < marks.size();
    if (!fits) {
      return config.refuse(
          config.place() / key / i,
          fmt::format("found {}; allowed: a layer, from 0 to {}", shown(layer), marks.size() - 1));
    }
    marks[layer.get<std::size_t>()] = value;
  }
}

Marks moe_layers(HuggingFaceConfig& config, const Architecture& architecture, int layers) {
  // The first of these keys that is present decides.
  config.pass_over({"mlp_layer_types", "moe_layer_layout", "moe_layer_freq", "moe_layers",
                    "moe_layer_start_index", "moe_layer_num_skipped", "moe_layer_end_index",
                    "interleave_moe_layer_step", "moe_layer_interval", "moe_expert_interval",
                    "moe_layer_frequency", "first_k_dense_replace", "num_dense_layers",
                    "decoder_sparse_step", "mlp_only_layers"});
  if (const auto moe = marks_by_list(config, "mlp_layer_types", layers, "dense", "sparse")) {
    return *moe;
  }
  if (const auto moe = marks_by_list(config, "moe_layer_layout", layers, 0, 1)) return *moe;
  const Json* frequencies = config.find({"moe_layer_freq"});
  if (frequencies != nullptr && frequencies->is_array()) {
    return marks_by_list(config, "moe_layer_freq", layers, 0, 1).value_or(Marks{});
  }
  const Json* moe_list = config.list("moe_layers");  // Llama 4
  if (moe_list != nullptr) {
    Marks moe(static_cast<std::size_t>(layers), false);
    mark(config, "moe_layers", true, moe);
    return moe;
  }
  const int first = config.small_count({"first_k_dense_replace", "moe_layer_start_index",
                                        "moe_layer_num_skipped", "num_dense_layers"},
                                       architecture.experts.dense_layers);
  const int every =
      config.small_count({"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval",
                          "moe_expert_interval", "moe_layer_frequency"},
                         0);
  const int frequency = config.small_count({"moe_layer_freq"}, 1);
  Marks moe = every > 0 ? moe_by_period(layers, first, every)
                        : moe_by_period(layers, first, std::max(1, frequency), 0);
  const Json* last = config.find({"moe_layer_end_index"});
  if (last != nullptr && *last != -1) {
    const int end = config.small_count({"moe_layer_end_index"}, layers);
    for (int layer = end + 1; layer < layers; ++layer) moe[static_cast<std::size_t>(layer)] = false;
  }
  mark(config, "mlp_only_layers", false, moe);
  return moe;
}

bool reads_windows(const Architecture& architecture) {
  return architecture.type.empty() || architecture.window > 0 || architecture.window_if_said ||
         architecture.window_on_demand;
}

// Notes a window that is ignored: left over from another family's config, as Mistral's
// `sliding_window` in one of Llama's.
void say_window_is_ignored(HuggingFaceConfig& config, HuggingFaceConfig::Keys keys) {
  const Json* window = config.find(keys);
  if (window == nullptr || !says_something(*window)) return;
  config.assume(fmt::format("a window of {} is ignored: the code of {} has no windows",
                            shown(*window), shown(std::string_view(config.text("model_type")))));
}

}  // namespace

void refuse_other_layers(HuggingFaceConfig& config, int layers) {
  const Json* types = config.layer_list("layer_types", layers);
  for (std::size_t i = 0; types != nullptr && i < types->size(); ++i) {
    if (is_softmax((*types)[i])) continue;
    return config.refuse(config.place() / "layer_types" / i,
                         fmt::format("found {}; allowed: full_attention, sliding_attention, "
                                     "chunked_attention",
                                     shown((*types)[i])));
  }
  const Json* kinds = config.layer_list("attn_type_list", layers);  // MiniMax
  for (std::size_t i = 0; kinds != nullptr && i < kinds->size(); ++i) {
    if ((*kinds)[i] == 1) continue;
    return config.refuse(
        config.place() / "attn_type_list" / i,
        fmt::format("found {}; allowed: 1 (softmax attention)", shown((*kinds)[i])));
  }
}

void read_window(HuggingFaceConfig& config, const Architecture& architecture, Transformer& model) {
  const bool asked = architecture.window_on_demand || architecture.type.empty();
  if (asked && !config.flag({"use_sliding_window"}, !architecture.window_on_demand)) return;
  const HuggingFaceConfig::Keys general = {"sliding_window", "attention_chunk_size", "window_size"};
  const HuggingFaceConfig::Keys smallthinker = {"sliding_window_size"};
  const auto& keys = architecture.type == "smallthinker" ? smallthinker : general;
  if (!reads_windows(architecture)) return say_window_is_ignored(config, keys);
  model.sliding_window =
      config.small_count(keys, config.says_none(keys) ? 0 : architecture.window, 1e8);
  if (model.sliding_window == 0) return;
  if (config.find(keys) == nullptr) {
    config.assume(fmt::format("not said, as the configuration class has it: a window of {} keys",
                              model.sliding_window));
  }
  if (config.has("attention_chunk_size") || architecture.type == "llama4_text") {
    config.assume("attention in chunks is planned as a sliding window as wide as a chunk");
  }
  const auto full = full_layers(config, architecture, model.layers);
  if (full) return use_full_layers(config, *full, model);
  model.full_attention_every = config.small_count(
      {"sliding_window_pattern", "global_attn_every_n_layers"}, architecture.full_attention_every);
}

void read_moe_layers(HuggingFaceConfig& config, const Architecture& architecture,
                     Transformer& model) {
  const Marks moe = moe_layers(config, architecture, model.layers);
  if (config.error()) return;
  const int count = marked(moe);
  if (count == 0) {
    return config.refuse(config.place(),
                         "found experts, and no layer that has them; allowed: one or more");
  }
  const int first = static_cast<int>(std::ranges::find(moe, true) - moe.begin());
  for (int every = 1; every <= first + 1; ++every) {
    if ((first + 1) % every != 0 || moe != moe_by_period(model.layers, first, every)) continue;
    model.moe_every = every;
    model.dense_layers = every > first ? 0 : first;
    return;
  }
  model.dense_layers = model.layers - count;
  config.assume(
      fmt::format("{} of {} layers have experts, not each n-th: the first {} are planned as dense",
                  count, model.layers, model.dense_layers));
}

}  // namespace trainyard
