// The time that a search spends on a legal plan, on an illegal one, and on the reason why it is
// illegal.
#include <benchmark/benchmark.h>

#include "model/plan/plan.h"
#include "tests/support/networks.h"

namespace trainyard {
namespace {

struct Question {  // Llama-3.1-405B on 16,384 devices
  Question() {
    cluster.devices_per_node = 8;
    cluster.nodes = 2048;
    cluster.device.rates.gemm[static_cast<std::size_t>(Dtype::bf16)].per_multiprocessor =
        FlopsPerSecond(1e12);
    training.global_batch = 2048;
    training.sequence_length = 8192;
    request.tensor_parallel = 8;
    request.pipeline_parallel = 16;
    request.virtual_stages = 8;
  }
  Transformer model = llama_405b();
  Cluster cluster;
  Training training;
  PlanRequest request;
};

void legal_plan(benchmark::State& state) {
  const Question q;
  if (!make_plan(q.request, q.model, q.cluster, q.training)) state.SkipWithError("illegal");
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan_if_legal(q.request, q.model, q.cluster, q.training));
  }
}
BENCHMARK(legal_plan);

void illegal_plan(benchmark::State& state) {
  Question q;
  q.request.micro_batch = 3;
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan_if_legal(q.request, q.model, q.cluster, q.training));
  }
}
BENCHMARK(illegal_plan);

void refused_plan(benchmark::State& state) {
  Question q;
  q.request.micro_batch = 3;
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_plan(q.request, q.model, q.cluster, q.training));
  }
}
BENCHMARK(refused_plan);

}  // namespace
}  // namespace trainyard
