// What the code of a family of decoders fixes and its configs need not say. Source: Hugging Face
// transformers 4.57 and 5.23, models/<type>/configuration_<type>.py and modeling_<type>.py; of
// families whose code lies beside their weights (chatglm, internlm2, exaone, bailing, arctic, …)
// that code.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/workload/transformer.h"

namespace trainyard {

enum class NormWeights {
  rms,           // h a norm
  layer,         // LayerNorm with biases: 2h
  layer_no_bias  // LayerNorm without: h
};

// The norm over queries and keys, by its parameters a layer.
enum class HeadNorm {
  none,
  by_head,         // 2d: one vector for all heads (Qwen3)
  by_head_biased,  // 4d: the same with biases (Persimmon)
  across_heads,    // (a + g)d (OLMo 2, Command R+)
  without_weights  // none (Llama 4)
};

// Linear layers that have biases.
struct LinearBiases {
  bool qkv = false;
  bool output = false;  // of attention
  bool mlp = false;     // experts and router included
};
inline constexpr LinearBiases kAllBiases{.qkv = true, .output = true, .mlp = true};
inline constexpr LinearBiases kQkvBiases{.qkv = true};

// Sizes of the configuration class, for what a config leaves out.
struct ClassSizes {
  int layers = 0;
  int hidden_size = 0;
  int attention_heads = 0;
  int kv_heads = 0;           // 0: attention_heads
  int head_dim = 0;           // 0: hidden_size / attention_heads
  std::int64_t ffn_size = 0;  // 0: 4 · hidden_size
  int vocabulary = 0;
};

struct ClassExperts {
  int experts = 0;  // 0: dense
  int per_token = 0;
  std::int64_t ffn_size = 0;  // 0: intermediate_size
  int shared = 0;
  int dense_layers = 0;
  std::int64_t shared_ffn_size = 0;  // of one shared expert of its own width; 0: ffn_size
};

// Parameters of a network that Transformer has no place for.
struct Beyond {
  std::string_view what;
  double (*parameters)(const Transformer&) = nullptr;
};

struct Architecture {
  std::string_view type;  // model_type
  NormWeights norm = NormWeights::rms;
  int norms = 2;  // a layer, as wide as hidden_size
  bool final_norm = true;
  bool plain_mlp = false;  // one up projection, no gate
  LinearBiases biases = {};
  bool attention_bias_of_output = true;  // what `attention_bias` switches
  bool head_bias = false;                // of the output head
  bool tied = false;                     // unless tie_word_embeddings says otherwise
  bool learned_positions = false;
  HeadNorm qk_norm = HeadNorm::none;
  HeadNorm qk_norm_on_demand = HeadNorm::by_head;  // where use_qk_norm or qk_layernorm asks for it
  bool sinks = false;
  int window = 0;                 // unless the config says it
  bool window_if_said = false;    // its code has windows, its class has none
  bool window_on_demand = false;  // none unless use_sliding_window says so
  int full_attention_every = 0;   // of a sliding-window model, unless its config says it
  bool recurrent = false;         // unless layer_types says that all layers are attention
  bool router_correction_bias = false;
  bool shared_expert_gate = false;
  ClassSizes sizes = {};
  LatentAttention latent = {};  // of the class; kv_rank 0: multi-head attention
  ClassExperts experts = {};
  Beyond beyond = {};
  std::string_view note = {};  // what is planned otherwise than it is
};

// The family of a model_type; nullptr: not known.
const Architecture* find_architecture(std::string_view type);
std::span<const Architecture> architectures();

}  // namespace trainyard
