#include "tests/model/workload/models.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace trainyard {
namespace {

using nlohmann::json;

// A null counts as absent.
int number(const json& config, const char* key, int fallback) {
  return config.contains(key) && config[key].is_number() ? config[key].get<int>() : fallback;
}

void read_latent_attention(const json& config, Transformer& model) {
  if (!config.contains("kv_lora_rank")) return;
  model.latent_attention = LatentAttention{.query_rank = number(config, "q_lora_rank", 0),
                                           .kv_rank = config["kv_lora_rank"],
                                           .nope_head_dim = config["qk_nope_head_dim"],
                                           .rope_head_dim = config["qk_rope_head_dim"],
                                           .value_head_dim = config["v_head_dim"]};
}

void read_experts(const json& config, Transformer& model) {
  for (const char* key : {"num_local_experts", "num_experts", "n_routed_experts"}) {
    model.experts = number(config, key, model.experts);
  }
  model.experts_per_token = number(config, "num_experts_per_tok", 0);
  model.expert_ffn_size = number(config, "moe_intermediate_size", static_cast<int>(model.ffn_size));
  model.shared_experts = number(config, "n_shared_experts", 0);
  model.shared_expert_ffn_size = model.expert_ffn_size;
  model.dense_layers = number(config, "first_k_dense_replace", 0);
  model.router_correction_bias = config.value("topk_method", "") == "noaux_tc";
}

}  // namespace

Transformer read_huggingface(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const json config = json::parse(stream);
  const std::string type = config["model_type"];
  Transformer model;
  model.name = file.stem().string();
  model.layers = config["num_hidden_layers"];
  model.hidden_size = config["hidden_size"];
  model.attention_heads = config["num_attention_heads"];
  model.kv_heads = config["num_key_value_heads"];
  model.head_dim = number(config, "head_dim", model.hidden_size / model.attention_heads);
  model.ffn_size = config["intermediate_size"];
  model.vocabulary = config["vocab_size"];
  model.biases = config.value("attention_bias", false);
  model.tied_embeddings = config["tie_word_embeddings"];
  model.qk_norm = type.starts_with("qwen3");
  model.attention_sinks = type == "gpt_oss";
  model.sliding_window = number(config, "sliding_window", 0);
  model.full_attention_every = type == "gpt_oss" ? 2 : 0;
  read_latent_attention(config, model);
  read_experts(config, model);
  return model;
}

Transformer gpt3_175b() {
  Transformer model;
  model.layers = 96;
  model.hidden_size = 12288;
  model.attention_heads = 96;
  model.kv_heads = 96;
  model.head_dim = 128;
  model.ffn_size = 4 * 12288;
  model.vocabulary = 51200;
  model.gated_mlp = false;
  model.norm = Norm::layer_norm;
  model.biases = true;
  model.tied_embeddings = true;
  model.learned_positions = true;
  return model;
}

Transformer mixtral_8x7b() {
  Transformer model = llama_8b();
  model.vocabulary = 32000;
  model.experts = 8;
  model.experts_per_token = 2;
  model.expert_ffn_size = 14336;
  return model;
}

Transformer deepseek_v3() {
  Transformer model;
  model.layers = 61;
  model.hidden_size = 7168;
  model.attention_heads = 128;
  model.kv_heads = 128;
  model.ffn_size = 18432;
  model.vocabulary = 129280;
  model.latent_attention = LatentAttention{1536, 512, 128, 64, 128};
  model.experts = 256;
  model.experts_per_token = 8;
  model.expert_ffn_size = 2048;
  model.shared_experts = 1;
  model.shared_expert_ffn_size = 2048;
  model.dense_layers = 3;
  model.router_correction_bias = true;
  return model;
}

Transformer gpt_oss_20b() {
  Transformer model;
  model.layers = 24;
  model.hidden_size = 2880;
  model.attention_heads = 64;
  model.kv_heads = 8;
  model.head_dim = 64;
  model.vocabulary = 201088;
  model.biases = true;
  model.attention_sinks = true;
  model.sliding_window = 128;
  model.full_attention_every = 2;
  model.experts = 32;
  model.experts_per_token = 4;
  model.expert_ffn_size = 2880;
  return model;
}

Training megatron_2022(std::int64_t global_batch, std::int64_t sequence_length) {
  Training training;
  training.global_batch = global_batch;
  training.sequence_length = sequence_length;
  training.precision = *find_precision_recipe("fp16");
  training.optimizer = *find_optimizer("adam");
  training.stack.flash_attention = false;
  training.stack.dropout = true;
  return training;
}

Training modern(std::int64_t sequence_length) {
  Training training;
  training.global_batch = 8;
  training.sequence_length = sequence_length;
  training.precision = *find_precision_recipe("bf16");
  training.optimizer = *find_optimizer("adamw");
  return training;
}

}  // namespace trainyard
