// One estimate of Llama-3.1-405B on 16,384 H100 (t 8, p 16, D 128, m 16), model and cluster loaded.
#include <benchmark/benchmark.h>

#include "model/cost/estimate.h"
#include "scenarios/scenario.h"

namespace trainyard {
namespace {

// A plan with interleaved chunks, or with the schedule's plain stages.
void estimate_llama_405b(benchmark::State& state) {
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
  Estimate out;
  for (auto _ : state) {
    estimate(job, resolved, out);
    benchmark::DoNotOptimize(out.step_time);
  }
}
BENCHMARK(estimate_llama_405b)->ArgName("virtual_stages")->Arg(1)->Arg(8);

}  // namespace
}  // namespace trainyard
