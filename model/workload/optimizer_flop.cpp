#include "model/workload/optimizer_flop.h"

#include <algorithm>

namespace trainyard {
namespace {

double iteration(double rows, double columns) {
  const double m = std::min(rows, columns);
  const double n = std::max(rows, columns);
  return 4 * m * m * n + 2 * m * m * m;
}

double mlp(const Transformer& model, double ffn_size) {
  return (model.gated_mlp ? 3 : 2) * iteration(model.hidden_size, ffn_size);
}

double latent_attention(const Transformer& model) {
  const LatentAttention& latent = *model.latent_attention;
  const double h = model.hidden_size;
  const double heads = model.attention_heads;
  const double query = heads * query_head_dim(model);
  double flop = iteration(h, latent.kv_rank + latent.rope_head_dim) +
                iteration(latent.kv_rank, heads * (latent.nope_head_dim + latent.value_head_dim)) +
                iteration(heads * latent.value_head_dim, h);
  if (latent.query_rank == 0) return flop + iteration(h, query);
  flop += iteration(h, latent.query_rank) + iteration(latent.query_rank, query);
  return flop;
}

double attention(const Transformer& model) {
  if (model.latent_attention) return latent_attention(model);
  const double query = static_cast<double>(model.attention_heads) * model.head_dim;
  const double key = static_cast<double>(model.kv_heads) * model.head_dim;
  return 2 * iteration(model.hidden_size, query) + 2 * iteration(model.hidden_size, key);
}

}  // namespace

UpdateFlop update_flop(const Optimizer& optimizer, const Transformer& model, LayerKind kind) {
  const double steps = optimizer.orthogonalisation_steps;
  if (steps == 0) return {};
  UpdateFlop flop{.dense = attention(model)};
  if (kind.mtp) flop.dense += iteration(model.hidden_size, 2.0 * model.hidden_size);
  if (!kind.moe) {
    flop.dense += mlp(model, static_cast<double>(model.ffn_size));
  } else {
    const auto expert = static_cast<double>(model.expert_ffn_size);
    flop.experts = model.experts * mlp(model, expert);
    if (model.shared_experts > 0) flop.dense += mlp(model, shared_expert_width(model));
  }
  return {steps * flop.dense, steps * flop.experts};
}

}  // namespace trainyard
