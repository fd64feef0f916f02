// One estimate of Llama-3.1-405B on 16,384 H100 (t 8, p 16, D 128, m 16), model and cluster loaded.
#include <benchmark/benchmark.h>

#include "model/cost/estimate.h"
#include "scenarios/scenario.h"

namespace trainyard {
namespace {

enum Kernels { timed_anew, timed_before };

// Estimates a plan with interleaved chunks or with plain stages. Kernel shapes are either new, or
// known to an estimator that has priced many plans.
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
  const Estimator estimator(job);
  Estimate out;
  for (auto _ : state) {
    if (state.range(1) == timed_before) {
      estimator.estimate(resolved, out);
    } else {
      estimate(job, resolved, out);
    }
    benchmark::DoNotOptimize(out.step_time);
  }
}
BENCHMARK(estimate_llama_405b)
    ->ArgNames({"virtual_stages", "kernels_timed_before"})
    ->ArgsProduct({{1, 8}, {timed_anew, timed_before}});

}  // namespace
}  // namespace trainyard
