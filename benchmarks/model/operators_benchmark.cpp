// Lists the operators of a layer, which every estimate does.
#include <benchmark/benchmark.h>

#include "model/workload/operators.h"
#include "tests/support/networks.h"

namespace trainyard {
namespace {

Training training() {
  Training out;
  out.global_batch = 1024;
  out.sequence_length = 4096;
  out.precision = *find_precision_recipe("bf16");
  out.optimizer = *find_optimizer("adam");
  return out;
}

Transformer dense() { return llama_70b(); }

// DeepSeek-V3 has the longest list.
Transformer experts() {
  Transformer model = dense();
  model.latent_attention = LatentAttention{1536, 512, 128, 64, 128};
  model.experts = 256;
  model.experts_per_token = 8;
  model.expert_ffn_size = 2048;
  model.shared_experts = 1;
  model.shared_expert_ffn_size = 2048;
  return model;
}

void list_layer(benchmark::State& state, const Transformer& model, LayerKind kind) {
  const Training trained = training();
  const LayerShard shard{.tensor = 8, .sequence_parallel = true, .expert = 8};
  for (auto _ : state) {
    benchmark::DoNotOptimize(layer_operators(model, trained, shard, kind));
  }
}

void layer_operators_dense(benchmark::State& state) { list_layer(state, dense(), {}); }
void layer_operators_experts(benchmark::State& state) {
  list_layer(state, experts(), {.moe = true});
}
BENCHMARK(layer_operators_dense);
BENCHMARK(layer_operators_experts);

}  // namespace
}  // namespace trainyard
