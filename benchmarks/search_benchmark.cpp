// The whole space of Llama-3.1-405B on H100s against the size of the cluster and the number of
// threads; items are combinations considered.
#include <benchmark/benchmark.h>

#include "model/cost/estimate.h"
#include "planner/planner.h"
#include "scenarios/scenario.h"

namespace trainyard {
namespace {

void search_llama_405b(benchmark::State& state) {
  auto scenario = read_scenario(TRAINYARD_EXAMPLE);
  if (!scenario) {
    state.SkipWithError("the example cannot be read");
    return;
  }
  Cluster& cluster = scenario->job.cluster;
  cluster.nodes = static_cast<int>(state.range(0)) / cluster.devices_per_node;
  const PreparedJob job = prepare(scenario->job);
  std::int64_t considered = 0;
  for (auto _ : state) {
    const SearchResult result =
        search(job, {.threads = static_cast<int>(state.range(1))},
               [&job](const Plan& plan, Estimate& out) { estimate(job, plan, out); });
    considered += result.considered;
  }
  state.SetItemsProcessed(considered);
}
BENCHMARK(search_llama_405b)
    ->ArgNames({"devices", "threads"})
    ->Args({512, 2})
    ->Args({2048, 2})
    ->Args({16384, 1})
    ->Args({16384, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard
