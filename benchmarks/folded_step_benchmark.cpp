// Lowers, folds and plays a step of Llama-3.1-405B on 16,384 H100 (t 8, p 16, D 128, m 16), as
// `trainyard simulate` does once model and cluster are loaded.
#include <benchmark/benchmark.h>

#include "scenarios/scenario.h"
#include "simulator/step.h"

namespace trainyard {
namespace {

void folded_step_llama_405b(benchmark::State& state) {
  const auto scenario = read_scenario(TRAINYARD_EXAMPLE);
  if (!scenario || !scenario->plan) {
    state.SkipWithError("the example cannot be read");
    return;
  }
  PlanRequest request = *scenario->plan;
  request.virtual_stages = static_cast<int>(state.range(0));
  const PreparedJob job = prepare(scenario->job);
  const auto plan = make_plan(request, job.job.model, job.job.cluster, job.job.training);
  if (!plan) {
    state.SkipWithError("the example's plan is refused");
    return;
  }
  const Plan resolved = resolve_recompute(job, *plan);
  std::int64_t tasks = 0;
  for (auto _ : state) {
    const auto step = simulate(job, resolved);
    if (!step || !step->step.folded()) {
      state.SkipWithError("the step is not folded");
      return;
    }
    tasks += step->operations;
  }
  state.SetItemsProcessed(tasks);
}
BENCHMARK(folded_step_llama_405b)
    ->ArgName("virtual_stages")
    ->Arg(1)
    ->Arg(8)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard
