// Searches of the whole space of Llama-3.1-405B on H100s by size of the cluster and number of
// threads; items are combinations considered. Also layers dealt to stages by dynamic programming,
// and pass orders.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "model/cost/estimate.h"
#include "planner/layers/allocation.h"
#include "planner/passes/pass_order.h"
#include "planner/planner.h"
#include "planner/search/enumeration.h"
#include "planner/search/node.h"
#include "scenarios/scenario.h"

namespace trainyard {
namespace {

// About `count` legal plans, evenly spread over all combinations of a space.
std::vector<PlanRequest> spread_requests(const PreparedJob& job, std::int64_t count) {
  const Job& j = job.job;
  const Enumeration space = enumerate(job, {});
  const std::int64_t stride = std::max<std::int64_t>(1, space.size() / count);
  std::vector<PlanRequest> requests;
  std::int64_t turn = 0;
  PlanRequest request;
  for (const Degrees& degrees : space.degrees) {
    set_degrees(space, degrees, request);
    for (const auto& shape : space.shapes[degrees.shapes]) {
      set_shape(shape, request);
      for (const Sharding& sharding : space.shardings[degrees.shardings]) {
        set_sharding(sharding, request);
        for (const RecomputeChoice& recompute : space.recomputes) {
          set_recompute(recompute, request);
          if (turn++ % stride != 0) continue;
          if (plan_if_legal(request, j.model, j.cluster, j.training)) requests.push_back(request);
        }
      }
    }
  }
  return requests;
}

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
        search(job, {.threads = static_cast<int>(state.range(1))}, analytic_evaluator(job));
    considered += result.considered;
  }
  state.SetItemsProcessed(considered);
}
BENCHMARK(search_llama_405b)
    ->ArgNames({"devices", "threads"})
    ->Args({8, 2})
    ->Args({64, 2})
    ->Args({512, 2})
    ->Args({4096, 2})
    ->Args({16384, 1})
    ->Args({16384, 2})
    ->Args({131072, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Legal plans spread over a space, each made from its request and priced as the search does. The
// estimator starts without known kernel times; with more plans, more of them share those times.
void evaluate_plans(benchmark::State& state) {
  auto scenario = read_scenario(TRAINYARD_EXAMPLE);
  if (!scenario) {
    state.SkipWithError("the example cannot be read");
    return;
  }
  scenario->job.cluster.nodes = static_cast<int>(state.range(0)) / 8;
  const PreparedJob job = prepare(scenario->job);
  const Job& j = job.job;
  const std::vector<PlanRequest> requests = spread_requests(job, state.range(1));
  Estimate out;
  for (auto _ : state) {
    const Estimator estimator(job);
    for (const PlanRequest& request : requests) {
      estimator.estimate(*plan_if_legal(request, j.model, j.cluster, j.training), out);
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(requests.size()));
}
BENCHMARK(evaluate_plans)
    ->ArgNames({"devices", "plans"})
    ->Args({512, 1 << 12})
    ->Args({512, 1 << 16})
    ->Args({16384, 1 << 12})
    ->Args({16384, 1 << 16})
    ->Unit(benchmark::kMillisecond);

// The allocation problem of a plan: costs of its layers and stages before layers are dealt.
void allocation_problem_llama_405b(benchmark::State& state) {
  auto scenario = read_scenario(TRAINYARD_EXAMPLE);
  if (!scenario) {
    state.SkipWithError("the example cannot be read");
    return;
  }
  const PreparedJob job = prepare(scenario->job);
  const Job& j = job.job;
  const PlanRequest request{.tensor_parallel = 8, .pipeline_parallel = 16};
  const auto plan = plan_if_legal(request, j.model, j.cluster, j.training);
  for (auto _ : state) benchmark::DoNotOptimize(allocation_problem(job, *plan));
}
BENCHMARK(allocation_problem_llama_405b)->Unit(benchmark::kMicrosecond);

// Layers of two kinds in turn, slightly different in size so that no two allocations tie, and so
// little memory that the first stages must recompute.
AllocationProblem uneven_layers(int layers, int stages) {
  AllocationProblem problem;
  problem.microbatches = 4 * stages;
  for (int i = 0; i < layers; ++i) {
    const double size = (i % 4 == 0 ? 0.4 : 1) * (1 + 0.01 * (i * 37 % 101));
    problem.layers.push_back({.time = Seconds(3 * size),
                              .selective = Seconds(0.2 * size),
                              .full = Seconds(size),
                              .states = Bytes(size),
                              .saved = Bytes(size),
                              .saved_selective = Bytes(0.7 * size),
                              .saved_by_full = Bytes(0.05 * size),
                              .between_halves = Bytes(size),
                              .gradients = Bytes(0.1 * size),
                              .gathered = Bytes(0)});
  }
  const double share = static_cast<double>(layers) / stages;
  for (int j = 0; j < stages; ++j) {
    problem.stages.push_back({.time = Seconds(j == 0 || j + 1 == stages ? 2 : 0),
                              .fixed = Bytes(1),
                              .head = Bytes(0),
                              .capacity = Bytes(share * (1.5 + 0.5 * stages)),
                              .in_flight = static_cast<double>(stages - j)});
  }
  return problem;
}

void allocate(benchmark::State& state) {
  const AllocationProblem problem =
      uneven_layers(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(allocate_layers(problem));
}
BENCHMARK(allocate)
    ->ArgNames({"layers", "stages"})
    ->Args({100, 16})
    ->Args({400, 16})
    ->Args({400, 64})
    ->Args({800, 128})
    ->Unit(benchmark::kMillisecond);

// The zero-bubble authors' times and memory (Qi et al. 2023;
// tests/planner/passes/pass_order_test.cpp).
void order_passes(benchmark::State& state) {
  const auto stages = static_cast<std::size_t>(state.range(0));
  PassOrderProblem problem{.microbatches = static_cast<int>(state.range(1)),
                           .send = Seconds(601e-6),
                           .kept_for_weights = 73728.0 / 201216};
  problem.stages.assign(stages,
                        {Seconds(18522e-6), Seconds(18086e-6), Seconds(9337e-6), Seconds(0)});
  problem.most_in_flight.assign(stages, 2.0 * static_cast<double>(stages));
  const Seconds ideal = problem.microbatches * problem.stages[0].total();
  for (auto _ : state) {
    const auto found = find_pass_order(problem);
    state.counters["bubble_percent"] = 100 * (found->time / ideal - 1);
    state.counters["bound_percent"] = 100 * (found->bound / ideal - 1);
  }
}
BENCHMARK(order_passes)
    ->ArgNames({"stages", "microbatches"})
    ->Args({8, 24})
    ->Args({64, 192})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard
