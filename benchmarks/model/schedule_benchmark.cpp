// The closed forms, which every estimate uses, and the player, by p and m. Items are stages and
// passes.
#include <benchmark/benchmark.h>

#include <vector>

#include "model/schedule/play.h"
#include "model/schedule/schedule.h"

namespace trainyard {
namespace {

const PassTimes kStage = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3)};

PipelineShape shape_of(const Schedule& schedule, benchmark::State& state) {
  const int stages = static_cast<int>(state.range(0));
  return schedule.shape(stages, schedule.needs_chunks ? 2 : 1, 4 * stages);
}

void span(benchmark::State& state, const Schedule* schedule) {
  const PipelineShape shape = shape_of(*schedule, state);
  const std::vector<PassTimes> stages(static_cast<std::size_t>(shape.stages), kStage);
  for (auto _ : state) benchmark::DoNotOptimize(longest_span(*schedule, shape, stages));
  state.SetItemsProcessed(state.iterations() * shape.stages);
}

void played(benchmark::State& state, const Schedule* schedule) {
  const PipelineShape shape = shape_of(*schedule, state);
  const PassList passes = schedule->passes(shape);
  const PlayTimes times = uniform_times(shape, kStage);
  for (auto _ : state) benchmark::DoNotOptimize(play(passes, shape, times));
  std::int64_t all = 0;
  for (const auto& list : passes) all += static_cast<std::int64_t>(list.size());
  state.SetItemsProcessed(state.iterations() * all);
}

BENCHMARK_CAPTURE(span, one_f_one_b, find_schedule("1f1b"))->Arg(16)->Arg(128);
BENCHMARK_CAPTURE(span, interleaved, find_schedule("interleaved-1f1b"))->Arg(16)->Arg(128);
BENCHMARK_CAPTURE(span, zb_h2, find_schedule("zb-h2"))->Arg(16)->Arg(128);
BENCHMARK_CAPTURE(played, one_f_one_b, find_schedule("1f1b"))->Arg(4)->Arg(16)->Arg(64);
BENCHMARK_CAPTURE(played, interleaved, find_schedule("interleaved-1f1b"))->Arg(16);
BENCHMARK_CAPTURE(played, zb_h2, find_schedule("zb-h2"))->Arg(16);
BENCHMARK_CAPTURE(span, zb_v, find_schedule("zb-v"))->Arg(16);
BENCHMARK_CAPTURE(span, dualpipe, find_schedule("dualpipe"))->Arg(16);

}  // namespace
}  // namespace trainyard
