#include "tests/model/program/tiny.h"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

Transformer tiny_model(bool tied) {
  Transformer model;
  model.layers = 4;
  model.hidden_size = 8;
  model.attention_heads = 4;
  model.kv_heads = 4;
  model.head_dim = 2;
  model.ffn_size = 12;
  model.vocabulary = 13;
  model.tied_embeddings = tied;
  return model;
}

Cluster tiny_cluster(int devices) {
  Cluster cluster;
  cluster.devices_per_node = devices;
  cluster.nodes = 1;
  cluster.device.name = "a device";
  cluster.device.host_bandwidth = BytesPerSecond(64e9);
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8, Dtype::fp4}) {
    cluster.device.rates.gemm[static_cast<std::size_t>(dtype)].per_multiprocessor =
        FlopsPerSecond(1e12);
  }
  return cluster;
}

}  // namespace

Transformer tiny_gpt(bool tied) {
  Transformer model = tiny_model(tied);
  model.gated_mlp = false;
  model.norm = Norm::layer_norm;
  model.biases = true;
  model.learned_positions = true;
  return model;
}

Transformer tiny_llama(bool tied) {
  Transformer model = tiny_model(tied);
  model.kv_heads = 2;
  return model;
}

Transformer tiny_moe() {
  Transformer model = tiny_llama(false);
  model.experts = 4;
  model.experts_per_token = 2;
  model.expert_ffn_size = 4;
  model.moe_every = 2;
  return model;
}

Transformer tiny_latent() {
  Transformer model = tiny_llama(false);
  model.kv_heads = 4;
  model.latent_attention = {
      .query_rank = 6, .kv_rank = 3, .nope_head_dim = 2, .rope_head_dim = 4, .value_head_dim = 5};
  return model;
}

Training tiny_training() {
  Training training;
  training.global_batch = 8;
  training.sequence_length = 4;
  training.precision = *find_precision_recipe("bf16");
  training.optimizer = *find_optimizer("sgd");
  return training;
}

Setting tiny_setting(const Transformer& model, const PlanRequest& request) {
  return tiny_setting(model, tiny_training(), request);
}

Setting tiny_setting(const Transformer& model, const Training& training,
                     const PlanRequest& request) {
  const int devices = request.tensor_parallel * request.context_parallel *
                      request.pipeline_parallel * request.data_parallel.value_or(1);
  const auto plan = make_plan(request, model, tiny_cluster(devices), training);
  if (!plan) {
    ADD_FAILURE() << plan.error().where << ": " << plan.error().message;
    return {};
  }
  return {model, training, *plan};
}

}  // namespace trainyard
