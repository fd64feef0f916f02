#include "scenarios/huggingface/differences.h"

namespace trainyard {
namespace {

class Differences {
 public:
  void add(std::string what, double parameters) {
    if (parameters != 0) list_.push_back({std::move(what), parameters});
  }
  std::vector<ParameterDifference> list() && { return std::move(list_); }

 private:
  std::vector<ParameterDifference> list_;
};

int moe_layer_count(const Transformer& model) {
  int count = 0;
  for (int layer = 0; layer < model.layers; ++layer) {
    if (layer_kind(model, layer).moe) ++count;
  }
  return count;
}

void add_norms(const Transformer& model, const NetworkFacts& facts, Differences& differences) {
  const double h = model.hidden_size;
  const double norm = model.norm == Norm::layer_norm ? 2 * h : h;
  differences.add(facts.norms > 2 ? "norms beyond two a layer" : "norms",
                  (facts.norms - 2) * norm * model.layers - (facts.final_norm ? 0 : norm));
}

double head_norm_parameters(const Transformer& model, HeadNorm norm) {
  const double d = model.head_dim;
  switch (norm) {
    case HeadNorm::by_head:
      return 2 * d;
    case HeadNorm::by_head_biased:
      return 4 * d;
    case HeadNorm::across_heads:
      return (model.attention_heads + model.kv_heads) * d;
    case HeadNorm::none:
    case HeadNorm::without_weights:
      break;
  }
  return 0;
}

void add_head_norms(const Transformer& model, HeadNorm norm, Differences& differences) {
  const double planned = model.qk_norm ? 2.0 * model.head_dim : 0;
  differences.add("norms of queries and keys",
                  (head_norm_parameters(model, norm) - planned) * model.layers);
}

// With latent attention, `attention_bias` is for the down-projections and the output projection.
double attention_bias_parameters(const Transformer& model, const LinearBiases& biases) {
  const double h = model.hidden_size;
  const double output = biases.output ? h : 0;
  if (!model.latent_attention) return output;
  const LatentAttention& latent = *model.latent_attention;
  const double down = latent.query_rank + latent.kv_rank + latent.rope_head_dim;
  return output + (biases.qkv ? down : 0);
}

void add_biases(const Transformer& model, const LinearBiases& biases, Differences& differences) {
  if (model.biases) return;
  const double attention = attention_bias_parameters(model, biases);
  differences.add("biases of attention", attention * model.layers);
  if (!biases.mlp) return;
  const double up = (model.gated_mlp ? 2.0 : 1.0) * static_cast<double>(model.ffn_size);
  const int dense = model.layers - moe_layer_count(model);
  differences.add("biases of the MLP", (up + model.hidden_size) * dense);
  // For gpt-oss, without the biases of attention; the router has biases, too.
  const double expert_up =
      (model.gated_mlp ? 2.0 : 1.0) * static_cast<double>(model.expert_ffn_size);
  differences.add("biases of the experts",
                  model.experts * (expert_up + model.hidden_size + 1) * moe_layer_count(model));
}

void add_embedding(const Transformer& model, int width, Differences& differences) {
  if (width == 0) return;
  const double h = model.hidden_size;
  differences.add("the embedding, of another width",
                  static_cast<double>(model.vocabulary) * (width - h) + 2 * h * width);
}

void add_indexer(const Transformer& model, const NetworkFacts& facts, Differences& differences) {
  if (facts.index_heads == 0 || !model.latent_attention) return;
  const double h = model.hidden_size;
  const double dim = facts.index_head_dim;
  const double heads = facts.index_heads;
  const double one =
      model.latent_attention->query_rank * heads * dim + h * dim + 2 * dim + h * heads;
  differences.add("the indexer of sparse attention", one * model.layers);
}

}  // namespace

std::vector<ParameterDifference> parameter_differences(const Transformer& model,
                                                       const Architecture& architecture,
                                                       const NetworkFacts& facts) {
  Differences differences;
  add_norms(model, facts, differences);
  add_head_norms(model, facts.qk_norm, differences);
  add_biases(model, facts.biases, differences);
  if (facts.head_bias) {
    differences.add("the bias of the output head", static_cast<double>(model.vocabulary));
  }
  if (architecture.shared_expert_gate && model.shared_experts > 0) {
    differences.add("the gate of the shared expert",
                    1.0 * model.hidden_size * moe_layer_count(model));
  }
  add_embedding(model, facts.embedding_width, differences);
  add_indexer(model, facts, differences);
  const Beyond& beyond = architecture.beyond;
  if (beyond.parameters != nullptr) {
    differences.add(std::string(beyond.what), beyond.parameters(model));
  }
  return std::move(differences).list();
}

}  // namespace trainyard
