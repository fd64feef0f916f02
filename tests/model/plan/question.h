// A small dense job of 64 devices to ask plans of: 32 layers, 32 heads, 8 KV heads, B = 64.
#pragma once

#include <string>

#include "model/plan/plan.h"

namespace trainyard {

struct PlanQuestion {
  PlanQuestion() {
    model.layers = 32;
    model.hidden_size = 4096;
    model.attention_heads = 32;
    model.kv_heads = 8;
    model.head_dim = 128;
    model.ffn_size = 14336;
    model.vocabulary = 128256;
    cluster.devices_per_node = 8;
    cluster.nodes = 8;
    cluster.device.name = "a device";
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
      cluster.device.rates.gemm[static_cast<std::size_t>(dtype)].per_multiprocessor =
          FlopsPerSecond(1e12);
    }
    training.global_batch = 64;
    training.sequence_length = 8192;
  }

  Expected<Plan> answer() const { return make_plan(request, model, cluster, training); }
  // "legal", or the refusal as "/plan/key: message".
  std::string refusal() const {
    const auto plan = answer();
    return plan ? "legal" : plan.error().where + ": " + plan.error().message;
  }

  // Gives every layer 16 experts of width 2,048, of which each token passes two.
  void make_experts() {
    model.experts = 16;
    model.experts_per_token = 2;
    model.expert_ffn_size = 2048;
  }

  Transformer model;
  Cluster cluster;
  Training training;
  PlanRequest request;
};

}  // namespace trainyard
