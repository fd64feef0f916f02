// Laws over random networks and degrees: what all ranks do and hold together is what the network
// needs (handbook §12.1, §12.2, §12.6).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "model/workload/operators.h"
#include "tests/model/workload/models.h"

namespace trainyard {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool coin() { return below(2) == 1; }
  int power_of_two(int largest_exponent) { return 1 << below(largest_exponent + 1); }

 private:
  std::mt19937 engine_;
};

Transformer random_model(Dice& dice) {
  Transformer model;
  model.layers = 1 + dice.below(6);
  model.hidden_size = 64 * (1 + dice.below(8));
  model.attention_heads = 32;
  model.kv_heads = dice.power_of_two(5);
  model.head_dim = 16 * (1 + dice.below(4));
  model.ffn_size = 16 * (1 + dice.below(30));
  model.vocabulary = 1000 + dice.below(1000);
  model.gated_mlp = dice.coin();
  model.norm = dice.coin() ? Norm::rms_norm : Norm::layer_norm;
  model.biases = dice.coin();
  model.qkv_biases = dice.coin();
  model.attention_sinks = dice.coin();
  model.learned_positions = dice.coin();
  if (dice.coin()) model.sliding_window = 100 + dice.below(2000);
  model.full_attention_every = dice.below(3);
  if (dice.coin()) {
    model.latent_attention = LatentAttention{dice.coin() ? 48 : 0, 32, 24, 8, 16};
    model.kv_heads = model.attention_heads;
  } else {
    model.qk_norm = dice.coin();
  }
  if (dice.coin()) {
    model.experts = 16;
    model.experts_per_token = 1 + dice.below(4);
    model.expert_ffn_size = 16 * (1 + dice.below(10));
    model.shared_experts = dice.below(3);
    model.shared_expert_ffn_size = model.expert_ffn_size;
    model.dense_layers = dice.below(3);
    model.moe_every = 1 + dice.below(2);
    model.router_correction_bias = dice.coin();
  }
  return model;
}

struct Degrees {
  LayerShard shard;
  int data = 1;  // D

  int ranks() const { return shard.tensor * shard.context * data; }
};

Degrees random_degrees(Dice& dice, const Transformer& model) {
  Degrees degrees;
  LayerShard& shard = degrees.shard;
  shard.tensor = dice.power_of_two(4);
  // A plan with experts and t > 1 has sequence parallelism (handbook §4); the laws do not need it.
  shard.sequence_parallel = shard.tensor > 1 && dice.coin();
  shard.context = dice.power_of_two(1);
  shard.context_algorithm = dice.coin() ? ContextAlgorithm::ring : ContextAlgorithm::ulysses;
  shard.micro_batch = 1 + dice.below(3);
  degrees.data = dice.power_of_two(3);
  if (model.experts > 0) {
    shard.expert = std::min(dice.power_of_two(4), degrees.ranks());
    shard.expert_tensor = std::min(dice.power_of_two(2), degrees.ranks() / shard.expert);
    shard.load_imbalance = 1 + 0.1 * dice.below(10);
    shard.capacity_factor = dice.coin() ? 1.25 : 0;
  }
  return degrees;
}

Training random_training(Dice& dice) {
  Training training = modern(1024);
  const auto recipes = precision_recipes();
  training.precision =
      recipes[static_cast<std::size_t>(dice.below(static_cast<int>(recipes.size())))];
  training.stack.flash_attention = dice.coin();
  training.stack.dropout = dice.coin();
  return training;
}

// Handbook §2 and §3: the forward FLOP of one token in one layer, two per multiplication.
double attention_flop(const Transformer& model, double keys) {
  const double h = model.hidden_size, a = model.attention_heads;
  if (!model.latent_attention) {
    const double d = model.head_dim;
    return 2 * (h * d * (a + 2 * model.kv_heads) + a * d * h) + 4 * keys * a * d;
  }
  const LatentAttention& l = *model.latent_attention;
  const double d_qk = l.nope_head_dim + l.rope_head_dim, d_v = l.value_head_dim;
  const double query = l.query_rank > 0 ? h * l.query_rank + l.query_rank * a * d_qk : h * a * d_qk;
  return 2 * (query + h * (l.kv_rank + l.rope_head_dim) + l.kv_rank * a * (l.nope_head_dim + d_v) +
              a * d_v * h) +
         2 * keys * a * (d_qk + d_v);
}

double mlp_flop(const Transformer& model, LayerKind kind) {
  const double h = model.hidden_size, matrices = model.gated_mlp ? 3 : 2;
  if (!kind.moe) return 2 * matrices * h * static_cast<double>(model.ffn_size);
  const double widths = static_cast<double>(model.expert_ffn_size * model.experts_per_token +
                                            model.shared_expert_ffn_size * model.shared_experts);
  return 2 * h * model.experts + 2 * matrices * h * widths;
}

double forward_flop_of_a_token(const Transformer& model, double sequence) {
  double sum = 2.0 * model.hidden_size * static_cast<double>(model.vocabulary);
  for (int layer = 0; layer < model.layers; ++layer) {
    const LayerKind kind = layer_kind(model, layer);
    const double keys = kind.sliding ? std::min<double>(sequence, model.sliding_window) : sequence;
    sum += attention_flop(model, keys) + mlp_flop(model, kind);
  }
  return sum;
}

double counted(const OperatorList& list) {
  double sum = 0;
  for (const Operator& op : list) sum += op.forward.value() / op.replicas;
  return sum;
}

// §12.2: the sum over ranks and micro-batches is §3. Here it covers D·b sequences, one micro-batch
// of each replica.
TEST(OperatorLaws, FlopOfAllRanksAreTheModels) {
  Dice dice(20240607);
  for (int trial = 0; trial < 2000; ++trial) {
    const Transformer model = random_model(dice);
    const Degrees degrees = random_degrees(dice, model);
    const Training training = random_training(dice);
    double rank = counted(head_operators(model, training, degrees.shard));
    for (int layer = 0; layer < model.layers; ++layer) {
      rank += counted(layer_operators(model, training, degrees.shard, layer_kind(model, layer)));
    }
    const double tokens = 1024.0 * degrees.shard.micro_batch * degrees.data;
    const double expected = tokens * forward_flop_of_a_token(model, 1024);
    ASSERT_NEAR(rank * degrees.ranks() / expected, 1, 1e-9) << "trial " << trial;
  }
}

struct Tensor {
  double size;
  double replicas;
};

// §12.1: the tensors of one layer times their replicas, c·D where t shards, t·c·D where it
// replicates, t/g-fold KV heads in between, D_e for experts.
class LayerTensors {
 public:
  LayerTensors(const Transformer& model, const Degrees& degrees)
      : model_(model), all_(degrees.ranks()), sharded_(all_ / degrees.shard.tensor) {
    kv_ = sharded_ * std::max(1.0, static_cast<double>(degrees.shard.tensor) / model.kv_heads);
    expert_ = all_ / (static_cast<double>(degrees.shard.expert) * degrees.shard.expert_tensor);
    expert_bias_ = all_ / degrees.shard.expert;
    h_ = model.hidden_size;
    bias_ = model.biases ? 1 : 0;
  }

  double held(LayerKind kind) {
    add(2 * h_ * (model_.norm == Norm::layer_norm ? 2 : 1), all_);
    if (model_.latent_attention) {
      add_latent();
    } else {
      add_heads();
    }
    if (model_.attention_sinks) add(model_.attention_heads, sharded_);
    if (kind.moe) {
      add_experts();
    } else {
      add_mlp(static_cast<double>(model_.ffn_size), 1, sharded_, all_);
    }
    double sum = 0;
    for (const Tensor& tensor : tensors_) sum += tensor.size * tensor.replicas;
    return sum;
  }

 private:
  void add(double size, double replicas) { tensors_.push_back({size, replicas}); }
  void column(double in, double out, double replicas) { add((in + bias_) * out, replicas); }
  void row(double in, double replicas) {
    add(in * h_, replicas);
    add(bias_ * h_, all_);
  }

  void add_heads() {
    const double ad = model_.attention_heads * model_.head_dim;
    const double gd = model_.kv_heads * model_.head_dim;
    const double qkv_bias = model_.biases || model_.qkv_biases ? 1 : 0;
    add((h_ + qkv_bias) * ad, sharded_);
    add((h_ + qkv_bias) * 2 * gd, kv_);
    row(ad, sharded_);
    if (model_.qk_norm) add(2 * model_.head_dim, all_);
  }

  void add_latent() {
    const LatentAttention& l = *model_.latent_attention;
    const double a = model_.attention_heads, d_qk = l.nope_head_dim + l.rope_head_dim;
    if (l.query_rank > 0) {
      column(h_, l.query_rank, all_);
      add(l.query_rank, all_);
      column(l.query_rank, a * d_qk, sharded_);
    } else {
      column(h_, a * d_qk, sharded_);
    }
    column(h_, l.kv_rank + l.rope_head_dim, all_);
    add(l.kv_rank, all_);
    column(l.kv_rank, a * (l.nope_head_dim + l.value_head_dim), sharded_);
    row(a * l.value_head_dim, sharded_);
  }

  void add_mlp(double width, double copies, double matrix_replicas, double bias_replicas) {
    const double up = model_.gated_mlp ? 2 * width : width;
    add(copies * (h_ + bias_) * up, matrix_replicas);
    add(copies * width * h_, matrix_replicas);
    add(copies * bias_ * h_, bias_replicas);
  }

  void add_experts() {
    const double experts = model_.experts;
    add(experts * (h_ + bias_ + (model_.router_correction_bias ? 1 : 0)), all_);
    add_mlp(static_cast<double>(model_.expert_ffn_size), experts, expert_, expert_bias_);
    if (model_.shared_experts > 0) {
      add_mlp(static_cast<double>(model_.shared_expert_ffn_size * model_.shared_experts), 1,
              sharded_, all_);
    }
  }

  const Transformer& model_;
  double all_, sharded_, kv_ = 0, expert_ = 0, expert_bias_ = 0, h_ = 0, bias_ = 0;
  std::vector<Tensor> tensors_;
};

double weights(const OperatorList& list) {
  double sum = 0;
  for (const Operator& op : list) sum += op.weights;
  return sum;
}

TEST(OperatorLaws, WeightsOfAllRanksAreTensorsTimesReplicas) {
  Dice dice(19930412);
  for (int trial = 0; trial < 2000; ++trial) {
    const Transformer model = random_model(dice);
    const Degrees degrees = random_degrees(dice, model);
    const LayerKind kind = layer_kind(model, dice.below(model.layers));
    const double rank = weights(layer_operators(model, random_training(dice), degrees.shard, kind));
    const double expected = LayerTensors(model, degrees).held(kind);
    ASSERT_NEAR(rank * degrees.ranks() / expected, 1, 1e-12) << "trial " << trial;
  }
}

// The classes of LayerParameters shard the weights as the operators do.
TEST(OperatorLaws, ParameterClassesShardAsTheOperatorsDo) {
  Dice dice(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const Transformer model = random_model(dice);
    const LayerShard shard = random_degrees(dice, model).shard;
    const LayerKind kind = layer_kind(model, dice.below(model.layers));
    const LayerParameters layer = layer_parameters(model, kind);
    const double held = (layer.attention_sharded + layer.mlp_sharded) / shard.tensor +
                        layer.kv_sharded / std::min(shard.tensor, model.kv_heads) +
                        layer.experts / (shard.expert * shard.expert_tensor) +
                        layer.expert_biases / shard.expert + layer.replicated;
    const double rank = weights(layer_operators(model, random_training(dice), shard, kind));
    ASSERT_NEAR(rank / held, 1, 1e-12) << "trial " << trial;
  }
}

double saved(const OperatorList& list, bool core_recomputed = false) {
  double sum = 0;
  for (const Operator& op : list) {
    if (!(core_recomputed && op.in_attention_core)) sum += op.saved.value();
  }
  return sum;
}

// §12.6: what is kept does not rise with t, nor when the core is recomputed; keeping only the input
// is least.
TEST(OperatorLaws, SavedBytesNeverRiseWithTensorParallelismOrRecomputation) {
  Dice dice(271828);
  for (int trial = 0; trial < 1000; ++trial) {
    const Transformer model = random_model(dice);
    Degrees degrees = random_degrees(dice, model);
    const Training training = random_training(dice);
    LayerShard& shard = degrees.shard;
    const LayerKind kind = layer_kind(model, dice.below(model.layers));
    const auto list = layer_operators(model, training, shard, kind);
    EXPECT_LE(saved(list, true), saved(list));
    EXPECT_LE(layer_input_bytes(model, training, shard).value(), saved(list, true));
    if (shard.tensor == 1) continue;
    const double whole = saved(list);
    shard.tensor /= 2;
    shard.sequence_parallel = shard.sequence_parallel && shard.tensor > 1;
    ASSERT_LE(whole, saved(layer_operators(model, training, shard, kind)) * (1 + 1e-12))
        << "trial " << trial;
  }
}

// Every figure is for one micro-batch and linear in its sequences; a single rank repeats no work.
TEST(OperatorLaws, MicroBatchScalesEverythingButWeights) {
  Dice dice(31415);
  for (int trial = 0; trial < 500; ++trial) {
    const Transformer model = random_model(dice);
    const Training training = random_training(dice);
    const LayerKind kind = layer_kind(model, dice.below(model.layers));
    const auto one = layer_operators(model, training, {.micro_batch = 1}, kind);
    const auto three = layer_operators(model, training, {.micro_batch = 3}, kind);
    ASSERT_EQ(one.size(), three.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_DOUBLE_EQ(three[i].forward.value(), 3 * one[i].forward.value());
      EXPECT_DOUBLE_EQ(three[i].forward_traffic.value(), 3 * one[i].forward_traffic.value());
      EXPECT_DOUBLE_EQ(three[i].backward_traffic.value(), 3 * one[i].backward_traffic.value());
      EXPECT_DOUBLE_EQ(three[i].saved.value(), 3 * one[i].saved.value());
      EXPECT_EQ(three[i].weights, one[i].weights);
      EXPECT_EQ(one[i].replicas, 1);
    }
  }
}

}  // namespace
}  // namespace trainyard
