// The network being trained: a decoder-only transformer, dense or mixture-of-experts, with
// multi-head, grouped-query or multi-head latent attention (MLA). A plain value; counts only, no
// sharding.
//
// Sources: handbook §1–§2; MLA: DeepSeek-V2 (arXiv 2405.04434) §2.1; MoE and multi-token prediction
// (MTP): DeepSeek-V3 (arXiv 2412.19437) §2.1–§2.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainyard {

enum class Norm { rms_norm, layer_norm };

// Multi-head latent attention: keys and values are rebuilt from a latent of kv_rank elements.
// Queries and keys have nope_head_dim + rope_head_dim elements a head, values value_head_dim.
struct LatentAttention {
  int query_rank = 0;  // 0: the query is projected directly (DeepSeek-V2-Lite, Moonlight)
  int kv_rank = 0;
  int nope_head_dim = 0;
  int rope_head_dim = 0;
  int value_head_dim = 0;
};

struct Transformer {
  std::string name;
  int layers = 0;               // L
  int hidden_size = 0;          // h
  int attention_heads = 0;      // a
  int kv_heads = 0;             // g
  int head_dim = 0;             // d; unused under latent attention
  std::int64_t ffn_size = 0;    // f of the dense MLP
  std::int64_t vocabulary = 0;  // V, as published: padding is a matter of the plan

  bool gated_mlp = true;  // gate and up projection (SwiGLU); false: one up projection (GELU)
  Norm norm = Norm::rms_norm;
  bool biases = false;           // on every linear layer of the layers, router and experts included
  bool qkv_biases = false;       // on the QKV projection only (Qwen2); implied by `biases`
  bool tied_embeddings = false;  // the output head is the embedding transposed
  bool learned_positions = false;       // a position table of sequence_length × h
  bool qk_norm = false;                 // RMSNorm over each query and key head (Qwen3): 2d a layer
  bool attention_sinks = false;         // one learned logit a query head (gpt-oss)
  bool router_correction_bias = false;  // E a MoE layer (DeepSeek-V3 noaux_tc)

  int sliding_window = 0;  // keys a query sees in a sliding layer; 0: full attention everywhere
  int full_attention_layers = 0;  // leading layers with full attention (Qwen2's max_window_layers)
  int full_attention_every = 0;   // beyond them each n-th is full (gpt-oss: 2); 0: none is

  std::optional<LatentAttention> latent_attention;

  int experts = 0;                   // E, routed experts of a MoE layer; 0: dense network
  int experts_per_token = 0;         // k
  std::int64_t expert_ffn_size = 0;  // f_e
  int shared_experts = 0;
  std::int64_t shared_expert_ffn_size = 0;
  int dense_layers = 0;  // leading layers with the dense MLP
  int moe_every = 1;     // beyond them, layer i (0-based) is MoE when (i + 1) % moe_every == 0

  // MTP layers, not counted in `layers`. Each predicts one token further than the layer before it,
  // from that layer's hidden state and the embedding of the token that it was to predict.
  int mtp_layers = 0;
};

// What distinguishes one layer of a network from another; layers of one kind cost the same.
struct LayerKind {
  bool moe = false;
  bool sliding = false;
  bool mtp = false;  // an MTP layer: the last layer's kind, and the projection of its two inputs
  friend bool operator==(LayerKind, LayerKind) = default;
};
inline constexpr int kLayerKinds = 5;
inline constexpr int kMtpKind = 4;  // all MTP layers of a network are of one kind
constexpr int index_of(LayerKind kind) {
  return kind.mtp ? kMtpKind : (kind.moe ? 2 : 0) + (kind.sliding ? 1 : 0);
}

// The kind of a layer; MTP layers follow layer L − 1. Requires: 0 <= layer < layers + mtp_layers.
LayerKind layer_kind(const Transformer& model, int layer);
LayerKind mtp_kind(const Transformer& model);
inline LayerKind layer_kind_at(const Transformer& model, int index) {
  return index == kMtpKind ? mtp_kind(model) : LayerKind{index >= 2, index % 2 == 1};
}
inline int layers_with_mtp(const Transformer& model) { return model.layers + model.mtp_layers; }

// Whether the last stage of a pipeline needs the embedding too: for a tied head or for MTP layers.
inline bool shares_embedding(const Transformer& model) {
  return model.tied_embeddings || model.mtp_layers > 0;
}

// Elements of one query (= key) head and of one value head.
int query_head_dim(const Transformer& model);
int value_head_dim(const Transformer& model);

// Width of the shared experts together: they run as one dense MLP.
double shared_expert_width(const Transformer& model);

// Parameters of one layer, by how a plan shards them (handbook §2 and §12.1). Whole tensors, not
// shards. The bias of a row-parallel projection is replicated where its matrix is sharded.
struct LayerParameters {
  double attention_sharded = 0;  // QKV (query part), output, MLA up-projections, sinks: 1/t each
  double kv_sharded = 0;      // key and value projections: 1/t, or replicated t/g-fold when g < t
  double mlp_sharded = 0;     // dense MLP and shared experts: 1/t
  double mtp_projection = 0;  // of state and embedding, 2h × h: 1/t
  double experts = 0;         // routed experts, all E: 1/(e·e_t)
  double expert_biases = 0;   // of the experts' row-parallel projections: 1/e
  double replicated = 0;      // norms, router, row-parallel biases, MLA down-projections, …
  double router = 0;          // the part of `replicated` that is the router
  double total() const {
    return attention_sharded + kv_sharded + mlp_sharded + mtp_projection + experts + expert_biases +
           replicated;
  }
};
LayerParameters layer_parameters(const Transformer& model, LayerKind kind);

// Parameters of the embedding (V·h), the learned positions (s·h or 0), the output head (V·h; 0 when
// tied) and the final norms: MTP layers share embedding and head, but have a norm each before it.
struct EndParameters {
  double embedding = 0;
  double positions = 0;
  double head = 0;
  double final_norm = 0;
  double total() const { return embedding + positions + head + final_norm; }
};
EndParameters end_parameters(const Transformer& model, std::int64_t sequence_length);

// The number of parameters, and of active parameters: those that take part in the forward pass of
// one token (k of the E experts; embedding and head counted). Handbook §2.
double parameter_count(const Transformer& model, std::int64_t sequence_length);
double active_parameter_count(const Transformer& model, std::int64_t sequence_length);

}  // namespace trainyard
