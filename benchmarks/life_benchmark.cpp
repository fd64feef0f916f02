// Whole runs of 90 days on 16,384 GPUs with Llama 3's failure rate: 700 failures and 6,480 or
// 51,840 checkpoints each. items_per_second counts runs.
#include <benchmark/benchmark.h>

#include "simulator/life/campaign.h"

namespace trainyard {
namespace {

LifeSettings ninety_days() {
  LifeSettings settings;
  settings.work = 90 * kDay;
  settings.limit = 90 * kDay;
  settings.devices = 16384;
  settings.nodes = 2048;
  settings.devices_per_node = 8;
  settings.replicas = 128;
  settings.spares = 20;
  settings.copy = Seconds(1);
  settings.interval = Seconds(120);
  settings.tiers = {{.write = Seconds(3), .read = Seconds(3), .every = 1, .copies = 0}};
  return settings;
}

void lives(benchmark::State& state) {
  LifeSettings settings = ninety_days();
  settings.interval = Seconds(static_cast<double>(state.range(1)));
  CampaignOptions options;
  options.runs = static_cast<int>(state.range(0));
  options.threads = 2;
  for (auto _ : state) benchmark::DoNotOptimize(live_many(settings, options));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(lives)
    ->ArgNames({"runs", "interval_s"})
    ->Args({1000, 1200})
    ->Args({10000, 1200})
    ->Args({10000, 150})
    ->Unit(benchmark::kSecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace trainyard
