// The fields of a model: inline in a scenario, or a document of its own. Design §3, handbook §2.
#include <fmt/format.h>

#include "scenarios/fields/documents.h"

namespace trainyard {
namespace {

constexpr CountShape kSizeOrNone{.least = 0, .most = 1e8};
constexpr CountShape kHeadOrNone{.least = 0, .most = 1e6};
constexpr CountShape kMtpLayers{.least = 0, .most = 8};

// A field of the latent attention, which exists as soon as one of its ranks is given.
Field<Transformer> latent(std::string_view key, int LatentAttention::*member,
                          std::string_view doc) {
  return Field<Transformer>{
      {.key = std::string(key), .shape = {CountShape{}}, .doc = std::string(doc)},
      [member](const Json& value, Transformer& model, const Place&) -> Expected<void> {
        if (!model.latent_attention) model.latent_attention.emplace();
        (*model.latent_attention).*member = value.get<int>();
        return {};
      },
      [member](const Transformer& model) -> std::optional<Json> {
        if (!model.latent_attention || (*model.latent_attention).*member == 0) return std::nullopt;
        return (*model.latent_attention).*member;
      }};
}

Expected<void> complete_attention(Transformer& model, const Place& place) {
  const auto heads = model.attention_heads;
  if (model.kv_heads == 0) model.kv_heads = heads;
  if (heads % model.kv_heads != 0) {
    return (place / "kv_heads")
        .error(fmt::format("found {}; allowed: a divisor of attention_heads ({})", model.kv_heads,
                           heads));
  }
  if (const auto& latent_attention = model.latent_attention) {
    const bool whole = latent_attention->kv_rank > 0 && latent_attention->nope_head_dim > 0 &&
                       latent_attention->rope_head_dim > 0 && latent_attention->value_head_dim > 0;
    if (!whole) {
      return place.error(
          "found a part of latent attention; allowed: kv_lora_rank, qk_nope_head_dim, "
          "qk_rope_head_dim and v_head_dim together");
    }
  } else if (model.head_dim == 0 && model.hidden_size % heads != 0) {
    return (place / "attention_heads")
        .error(fmt::format("found {}; allowed: a divisor of hidden_size ({}), or a head_dim", heads,
                           model.hidden_size));
  }
  if (model.full_attention_layers > model.layers) {
    return (place / "full_attention_layers")
        .error(fmt::format("found {}; allowed: a whole number from 0 to layers ({})",
                           model.full_attention_layers, model.layers));
  }
  if (model.head_dim == 0) model.head_dim = std::max(1, model.hidden_size / heads);
  return {};
}

Expected<void> complete_experts(Transformer& model, const Place& place) {
  if (model.experts == 0) {
    if (model.experts_per_token == 0 && model.shared_experts == 0) return {};
    return place.error(
        "found experts_per_token or shared_experts without \"experts\"; allowed: all or none");
  }
  if (model.experts_per_token < 1 || model.experts_per_token > model.experts) {
    return (place / "experts_per_token")
        .error(fmt::format("found {}; allowed: a whole number from 1 to experts ({})",
                           model.experts_per_token, model.experts));
  }
  if (model.dense_layers > model.layers) {
    return (place / "dense_layers")
        .error(fmt::format("found {}; allowed: a whole number from 0 to layers ({})",
                           model.dense_layers, model.layers));
  }
  if (model.expert_ffn_size == 0) model.expert_ffn_size = model.ffn_size;
  if (model.shared_experts > 0 && model.shared_expert_ffn_size == 0) {
    model.shared_expert_ffn_size = model.expert_ffn_size;
  }
  return {};
}

std::vector<Field<Transformer>> size_fields() {
  using T = Transformer;
  return {
      text("name", &T::name, "name that tables show").absent("the name of the catalog entry"),
      remark<T>("source", "where the figures come from"),
      count("layers", &T::layers, "L: number of transformer layers", {.most = 1e5}).required(),
      count("hidden_size", &T::hidden_size, "h: elements of a token's vector (model width)")
          .required(),
      count("attention_heads", &T::attention_heads, "a: number of query heads").required(),
      count("vocabulary", &T::vocabulary, "V: size of the vocabulary, without padding",
            {.most = 1e8})
          .required(),
      count("kv_heads", &T::kv_heads, "g: number of key and value heads")
          .absent("`attention_heads`"),
      count("head_dim", &T::head_dim, "d: elements of an attention head")
          .absent("`hidden_size` / `attention_heads`"),
      count("ffn_size", &T::ffn_size, "f: width of the dense MLP", {.most = 1e8})
          .absent("4 · `hidden_size`"),
      flag("gated_mlp", &T::gated_mlp,
           "whether the MLP has gate and up projection (SwiGLU); false: only up"),
      choice("norm", &T::norm,
             std::array{Named<Norm>{"rmsnorm", Norm::rms_norm},
                        Named<Norm>{"layernorm", Norm::layer_norm}},
             "normalisation, twice a layer and once at the end"),
      flag("biases", &T::biases,
           "whether every linear map of the layers has biases, router and experts included"),
      flag("qkv_biases", &T::qkv_biases, "whether the QKV projection has biases (Qwen2)"),
      flag("tied_embeddings", &T::tied_embeddings,
           "whether the output head shares the embedding's weights"),
      flag("learned_positions", &T::learned_positions,
           "whether there is a learned position table, of `sequence_length` rows"),
      flag("qk_norm", &T::qk_norm, "whether each query and key head has a norm (Qwen3)"),
      flag("attention_sinks", &T::attention_sinks,
           "whether each query head has a learned sink logit (gpt-oss)"),
  };
}

std::vector<Field<Transformer>> attention_and_expert_fields() {
  using T = Transformer;
  return {
      count("sliding_window", &T::sliding_window,
            "width of the sliding window: keys that a query sees; 0: all", kSizeOrNone),
      count("full_attention_layers", &T::full_attention_layers,
            "number of leading layers with full attention where others have a sliding window",
            kHeadOrNone),
      count("full_attention_every", &T::full_attention_every,
            "n: after the leading layers each whose number, from 1, n divides has full attention "
            "(gpt-oss: 2); 0: none",
            kHeadOrNone),
      latent("q_lora_rank", &LatentAttention::query_rank,
             "rank of the queries in latent attention (MLA)"),
      latent("kv_lora_rank", &LatentAttention::kv_rank,
             "rank of keys and values in latent attention (MLA)"),
      latent("qk_nope_head_dim", &LatentAttention::nope_head_dim,
             "MLA: elements of a query or key head without positions"),
      latent("qk_rope_head_dim", &LatentAttention::rope_head_dim,
             "MLA: elements of a query or key head with rotary positions"),
      latent("v_head_dim", &LatentAttention::value_head_dim, "MLA: elements of a value head"),
      count("experts", &T::experts,
            "E: number of routed experts in a MoE layer; 0: the network is dense", kHeadOrNone),
      count("experts_per_token", &T::experts_per_token,
            "k: number of routed experts that a token visits", kHeadOrNone),
      count("expert_ffn_size", &T::expert_ffn_size, "f_e: width of a routed expert's MLP",
            {.most = 1e8})
          .absent("`ffn_size`"),
      count("shared_experts", &T::shared_experts, "number of experts that every token visits",
            kHeadOrNone),
      count("shared_expert_ffn_size", &T::shared_expert_ffn_size, "width of a shared expert's MLP",
            {.most = 1e8})
          .absent("`expert_ffn_size`"),
      count("dense_layers", &T::dense_layers,
            "number of leading layers with the dense MLP in a MoE network", kHeadOrNone),
      count("moe_every", &T::moe_every,
            "n: after the leading dense layers, layer i (from 0) is MoE if n divides i + 1"),
      flag("router_correction_bias", &T::router_correction_bias,
           "whether the router has a bias for each expert (DeepSeek-V3)"),
      count("mtp_layers", &T::mtp_layers,
            "number of multi-token-prediction layers, one for each further token, with its use of "
            "the head",
            kMtpLayers),
  };
}

std::vector<Field<Transformer>> model_fields() {
  std::vector<Field<Transformer>> all = size_fields();
  for (Field<Transformer>& field : attention_and_expert_fields()) all.push_back(std::move(field));
  return all;
}

}  // namespace

Expected<void> complete(Transformer& model, const Place& place) {
  if (auto done = complete_attention(model, place); !done) return done;
  if (model.ffn_size == 0) model.ffn_size = 4 * static_cast<std::int64_t>(model.hidden_size);
  return complete_experts(model, place);
}

const Section<Transformer>& model_section() {
  static const Section<Transformer> section("model", "The network that is trained: a decoder.",
                                            model_fields(), {.finish = complete});
  return section;
}

}  // namespace trainyard
