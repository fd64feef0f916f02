// Pass lists played by the simulator: spans equal the closed forms of handbook §8 to the
// picosecond, and on unlike stages the times of model/schedule's player.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "simulator/simulate.h"
#include "tests/model/schedule/pass_times.h"
#include "tests/simulator/pass_graph.h"

namespace trainyard {
namespace {

struct SpanCase {
  const char* schedule;
  PipelineShape shape;
  int forward, input_gradient, weight_gradient;  // ps
  std::int64_t span, makespan;                   // ps, by handbook §8
};

std::ostream& operator<<(std::ostream& out, const SpanCase& c) {
  return out << c.schedule << " p" << c.shape.stages << " m" << c.shape.microbatches;
}

class ClosedForm : public testing::TestWithParam<SpanCase> {};

TEST_P(ClosedForm, IsWhatTheSimulatorPlays) {
  const auto [name, p_v_m, f, b, w, span, makespan] = GetParam();
  const Schedule& schedule = *find_schedule(name);
  const PipelineShape shape = schedule.shape(p_v_m.stages, p_v_m.chunks, p_v_m.microbatches);
  const TaskGraph graph =
      pass_graph(schedule.passes(shape), shape, uniform_times(shape, picoseconds(f, b, w)));
  const auto timeline = simulate(graph);
  ASSERT_TRUE(timeline) << timeline.error().message;
  EXPECT_EQ(longest_span(stage_times(graph, *timeline)).count(), span);
  EXPECT_EQ(timeline->makespan.count(), makespan);
}

INSTANTIATE_TEST_SUITE_P(
    Handbook, ClosedForm,
    testing::Values(
        SpanCase{"gpipe", {4, 1, 8}, 2, 3, 1, 11 * 6, 11 * 6},   // (m+p−1)(F+B+W)
        SpanCase{"gpipe", {8, 1, 32}, 1, 1, 1, 39 * 3, 39 * 3},  // golden: 117
        SpanCase{"1f1b", {4, 1, 8}, 2, 3, 1, 11 * 6, 11 * 6},    // (m+p−1)(F+B+W)
        SpanCase{"1f1b", {16, 1, 192}, 1, 1, 1, 621, 621},       // 207 · 3
        SpanCase{
            "interleaved-1f1b", {4, 2, 8}, 2, 2, 2, 57, 57},  // m·6 + (p−1)·6/v; golden 28.5 · 2
        SpanCase{"interleaved-1f1b", {4, 4, 8}, 4, 4, 4, 105, 105},  // golden: 26.25 · 4
        SpanCase{"zb-h1", {8, 1, 24}, 1, 1, 1, 79, 79},              // m·3 + (p−1)(F+B−W)
        SpanCase{"zb-h1", {4, 1, 12}, 2, 3, 1, 12 * 6 + 3 * 4, 12 * 6 + 3 * 4},
        SpanCase{"zb-h2", {8, 1, 24}, 1, 1, 1, 72, 79},  // m·3 + (p−1)(F+B−2W); makespan: §8's test
        SpanCase{"zb-h2", {4, 1, 12}, 2, 2, 2, 72, 78},       // the last stage starts at (p−1)F
        SpanCase{"zb-v", {8, 2, 24}, 2, 2, 2, 144, 151},      // m·6; the last starts at (p−1)F/2
        SpanCase{"dualpipe", {8, 1, 20}, 1, 1, 1, 66, 66}));  // golden: bubble 6

TEST(Simulate, AgreesWithThePlayerOnStagesThatDiffer) {
  std::mt19937 random{7};
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (const Schedule* schedule : schedules()) {
    for (int i = 0; i < 40; ++i) {
      const int p = pick(2, 9);
      const int v = schedule->needs_chunks ? pick(2, 4) : 1;
      const PipelineShape shape = schedule->shape(p, v, p * pick(1, 5));
      if (!schedule->accepts(shape)) continue;
      SCOPED_TRACE(
          fmt::format("{} p {} v {} m {}", schedule->name, p, shape.chunks, shape.microbatches));
      PlayTimes times = uniform_times(shape, {});
      for (auto& stage : times.stage_chunk) {
        for (PassTimes& chunk : stage)
          chunk = picoseconds(pick(1, 999), pick(1, 999), pick(0, 999));
      }
      const PassList passes = schedule->passes(shape);
      const Played expected = play(passes, shape, times).value();
      const TaskGraph graph = pass_graph(passes, shape, times);
      const Timeline timeline = simulate(graph).value();
      const auto stages = stage_times(graph, timeline);
      EXPECT_EQ(timeline.makespan, to_picoseconds(expected.makespan));
      for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        EXPECT_EQ(stages[stage].start, to_picoseconds(expected.start[stage]));
        EXPECT_EQ(stages[stage].end, to_picoseconds(expected.end[stage]));
      }
    }
  }
}

TEST(Simulate, GivesTheSameTimelineToTheBit) {
  const PipelineShape shape = {6, 1, 18};
  const Schedule& schedule = *find_schedule("zb-h1");
  PlayTimes times = uniform_times(shape, picoseconds(3, 5, 2));
  times.stage_chunk[2][0] = picoseconds(4, 7, 3);
  const TaskGraph graph = pass_graph(schedule.passes(shape), shape, times);
  EXPECT_EQ(simulate(graph).value(), simulate(graph).value());
}

// Stage 0 waits for the gradient of micro-batch 0 before it sends micro-batch 1, but stage 1 needs
// micro-batch 1 before it starts on gradients.
TEST(Simulate, NamesTheCycleOfAPassListThatDeadlocks) {
  using enum PassKind;
  const PassList passes = {{{forward, 0, 0}, {backward, 0, 0}, {forward, 1, 0}, {backward, 1, 0}},
                           {{forward, 0, 0}, {forward, 1, 0}, {backward, 0, 0}, {backward, 1, 0}}};
  const PipelineShape shape = {2, 1, 2};
  const auto timeline = simulate(pass_graph(passes, shape, uniform_times(shape, seconds(1, 1, 1))));
  ASSERT_FALSE(timeline);
  EXPECT_EQ(timeline.error().message,
            "a deadlock: B0.0 of rank 0 waits for receive 1-0 of rank 0, which waits for "
            "send 1-0 of rank 1, which waits for F1.1 of rank 1, which waits for receive 0-1 of "
            "rank 1, which waits for send 0-1 of rank 0, which waits for B0.0 of rank 0");
}

}  // namespace
}  // namespace trainyard
