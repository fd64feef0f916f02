// What the code of each family of decoders fixes, so that its configs need not say it. Source:
// Hugging Face transformers 4.57 and 5.23, models/<type>/configuration_<type>.py and
// modeling_<type>.py; for families whose code is published with their weights (chatglm, internlm2,
// exaone, bailing, arctic, …) that code.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/workload/transformer.h"

namespace trainyard {

enum class NormWeights {
  rms,           // RMSNorm: h parameters
  layer,         // LayerNorm with biases: 2h
  layer_no_bias  // LayerNorm without: h
};

// The norm over queries and keys, with its number of parameters in each layer.
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
  bool output = false;  // output projection of attention
  bool mlp = false;     // experts and router included
};
inline constexpr LinearBiases kAllBiases{.qkv = true, .output = true, .mlp = true};
inline constexpr LinearBiases kQkvBiases{.qkv = true};

// The defaults of the family's configuration class, for sizes that a config leaves out.
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
  std::int64_t shared_ffn_size = 0;  // if a shared expert has its own width; 0: ffn_size
};

// Parameters of a network that a Transformer does not represent.
struct Beyond {
  std::string_view what;
  double (*parameters)(const Transformer&) = nullptr;
};

struct Architecture {
  std::string_view type;  // model_type
  NormWeights norm = NormWeights::rms;
  int norms = 2;  // norms of width hidden_size in each layer
  bool final_norm = true;
  bool plain_mlp = false;  // one up projection, no gate
  LinearBiases biases = {};
  bool attention_bias_of_output = true;  // whether `attention_bias` switches this bias, too
  bool head_bias = false;                // bias of the output head
  bool tied = false;                     // default of tie_word_embeddings
  bool learned_positions = false;
  HeadNorm qk_norm = HeadNorm::none;
  HeadNorm qk_norm_on_demand = HeadNorm::by_head;  // if use_qk_norm or qk_layernorm is set
  bool sinks = false;
  int window = 0;                 // default of the window
  bool window_if_said = false;    // has a window only if the config gives its size
  bool window_on_demand = false;  // has a window only if use_sliding_window is set
  int full_attention_every = 0;   // default for models with a sliding window
  bool recurrent = false;         // refused unless layer_types has attention in all layers
  bool router_correction_bias = false;
  bool shared_expert_gate = false;
  ClassSizes sizes = {};
  LatentAttention latent = {};  // defaults; kv_rank 0: no latent attention
  ClassExperts experts = {};
  Beyond beyond = {};
  std::string_view note = {};  // in what the planned network differs from the real one
};

// The family of a model_type; nullptr: not known.
const Architecture* find_architecture(std::string_view type);
std::span<const Architecture> architectures();

}  // namespace trainyard
