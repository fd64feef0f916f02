#include "model/workload/transformer.h"

namespace trainyard {
namespace {

double norm_parameters(const Transformer& model) {
  return model.norm == Norm::rms_norm ? model.hidden_size : 2.0 * model.hidden_size;
}

double when(bool present, double parameters) { return present ? parameters : 0.0; }

// Columns of the up projection: gate and up together, or up alone.
double up_width(const Transformer& model, double ffn_size) {
  return model.gated_mlp ? 2 * ffn_size : ffn_size;
}

// Parameters of an MLP of which a rank holds 1/t: both matrices, the bias of the up projection.
double mlp_sharded(const Transformer& model, double ffn_size) {
  const double up = up_width(model, ffn_size);
  return model.hidden_size * (up + ffn_size) + when(model.biases, up);
}

void add_attention(const Transformer& model, LayerParameters& layer) {
  const double h = model.hidden_size;
  const double query = static_cast<double>(model.attention_heads) * model.head_dim;
  const double key_value = 2.0 * model.kv_heads * model.head_dim;
  const bool qkv_bias = model.biases || model.qkv_biases;
  layer.attention_sharded = 2 * h * query + when(qkv_bias, query);
  layer.kv_sharded = h * key_value + when(qkv_bias, key_value);
  layer.replicated += when(model.qk_norm, 2.0 * model.head_dim);
}

void add_latent_attention(const Transformer& model, LayerParameters& layer) {
  const LatentAttention& latent = *model.latent_attention;
  const double h = model.hidden_size;
  const double query = static_cast<double>(model.attention_heads) * query_head_dim(model);
  const double key_value =
      static_cast<double>(model.attention_heads) * (latent.nope_head_dim + latent.value_head_dim);
  const double output = static_cast<double>(model.attention_heads) * latent.value_head_dim;
  const double kv_down = latent.kv_rank + latent.rope_head_dim;
  const double query_input = latent.query_rank > 0 ? latent.query_rank : h;

  layer.attention_sharded = query_input * query + latent.kv_rank * key_value + output * h +
                            when(model.biases, query + key_value);
  // The norms of the latent vectors, r_q and r_kv, lie beside the down-projections.
  layer.replicated += h * (latent.query_rank + kv_down) + latent.query_rank + latent.kv_rank +
                      when(model.biases, latent.query_rank + kv_down);
}

void add_experts(const Transformer& model, LayerParameters& layer) {
  const double h = model.hidden_size;
  const double experts = model.experts;
  layer.experts = experts * mlp_sharded(model, static_cast<double>(model.expert_ffn_size));
  layer.expert_biases = when(model.biases, experts * h);
  layer.router =
      experts * h + when(model.biases, experts) + when(model.router_correction_bias, experts);
  layer.replicated += layer.router;
  if (model.shared_experts > 0) {
    layer.mlp_sharded = mlp_sharded(model, shared_expert_width(model));
    layer.replicated += when(model.biases, h);
  }
}

}  // namespace

LayerKind layer_kind(const Transformer& model, int layer) {
  if (layer >= model.layers) return mtp_kind(model);
  const int ordinal = layer + 1;
  const bool moe =
      model.experts > 0 && layer >= model.dense_layers && ordinal % model.moe_every == 0;
  const int every = model.full_attention_every;
  const bool full = layer < model.full_attention_layers || (every > 0 && ordinal % every == 0);
  return {moe, model.sliding_window > 0 && !full};
}

LayerKind mtp_kind(const Transformer& model) {
  LayerKind kind = layer_kind(model, model.layers - 1);
  kind.mtp = true;
  return kind;
}

int query_head_dim(const Transformer& model) {
  if (!model.latent_attention) return model.head_dim;
  return model.latent_attention->nope_head_dim + model.latent_attention->rope_head_dim;
}

int value_head_dim(const Transformer& model) {
  if (!model.latent_attention) return model.head_dim;
  return model.latent_attention->value_head_dim;
}

double shared_expert_width(const Transformer& model) {
  return static_cast<double>(model.shared_experts) *
         static_cast<double>(model.shared_expert_ffn_size);
}

LayerParameters layer_parameters(const Transformer& model, LayerKind kind) {
  const double h = model.hidden_size;
  LayerParameters layer;
  layer.replicated = 2 * norm_parameters(model) + when(model.biases, h);
  if (model.latent_attention) {
    add_latent_attention(model, layer);
  } else {
    add_attention(model, layer);
  }
  layer.attention_sharded += when(model.attention_sinks, model.attention_heads);
  if (kind.moe) {
    add_experts(model, layer);
  } else {
    layer.mlp_sharded = mlp_sharded(model, static_cast<double>(model.ffn_size));
    layer.replicated += when(model.biases, h);
  }
  if (kind.mtp) {
    layer.mtp_projection = 2 * h * h;
    layer.replicated += 2 * norm_parameters(model);
  }
  return layer;
}

EndParameters end_parameters(const Transformer& model, std::int64_t sequence_length) {
  const double h = model.hidden_size;
  const double matrix = static_cast<double>(model.vocabulary) * h;
  EndParameters ends;
  ends.embedding = matrix;
  ends.positions = when(model.learned_positions, static_cast<double>(sequence_length) * h);
  ends.head = when(!model.tied_embeddings, matrix);
  ends.final_norm = (1 + model.mtp_layers) * norm_parameters(model);
  return ends;
}

double parameter_count(const Transformer& model, std::int64_t sequence_length) {
  double sum = end_parameters(model, sequence_length).total();
  for (int layer = 0; layer < layers_with_mtp(model); ++layer) {
    sum += layer_parameters(model, layer_kind(model, layer)).total();
  }
  return sum;
}

double active_parameter_count(const Transformer& model, std::int64_t sequence_length) {
  double idle = 0;
  for (int layer = 0; layer < layers_with_mtp(model); ++layer) {
    const LayerKind kind = layer_kind(model, layer);
    if (!kind.moe) continue;
    const LayerParameters parameters = layer_parameters(model, kind);
    idle += (parameters.experts + parameters.expert_biases) / model.experts *
            (model.experts - model.experts_per_token);
  }
  return parameter_count(model, sequence_length) - idle;
}

}  // namespace trainyard
