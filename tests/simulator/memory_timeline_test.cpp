// Memory of a rank over time: figures counted by hand, and the activations in flight that schedules
// declare.
#include "simulator/reading/memory_timeline.h"

#include <gtest/gtest.h>

#include "simulator/simulate.h"
#include "tests/model/schedule/pass_times.h"
#include "tests/simulator/pass_graph.h"

namespace trainyard {
namespace {

// Tasks one after the other that take a picosecond each.
TaskList row_of(int tasks) {
  TaskList list;
  for (int i = 0; i < tasks; ++i) list.add({.duration = Picoseconds(1)});
  return list;
}

MemoryTimeline memory_of(const TaskList& list) {
  const Timeline timeline = simulate({.lists = {list}, .ranks = {{0, {}}}}).value();
  return memory_timeline(list, timeline.of(0));
}

TEST(MemoryTimeline, TakesMemoryAtAStartAndGivesItBackAtAnEnd) {
  TaskList list = row_of(3);
  list.buffers = {{.bytes = Bytes(10)}, {Bytes(5), 0, 1, 1}, {Bytes(7), 1, 2, 2}};
  const MemoryTimeline memory = memory_of(list);
  const std::vector<MemoryPoint> expected = {{Picoseconds(0), Bytes(15)},
                                             {Picoseconds(1), Bytes(22)},
                                             {Picoseconds(2), Bytes(17)},
                                             {Picoseconds(3), Bytes(10)}};
  EXPECT_EQ(memory.points, expected);
  EXPECT_EQ(memory.peak, expected[1]);
  EXPECT_EQ(memory.at_peak, (std::vector<Bytes>{Bytes(10), Bytes(5), Bytes(7)}));
  EXPECT_EQ(memory.owner, 0);
}

TEST(MemoryTimeline, ReusesAtOneInstantWhatIsGivenBack) {
  TaskList list = row_of(2);
  list.buffers = {{Bytes(8), 0, 0}, {Bytes(8), 1, 1}};
  EXPECT_EQ(memory_of(list).peak.bytes, Bytes(8));
}

TEST(MemoryTimeline, OfARankWithoutBuffersIsZero) {
  const MemoryTimeline memory = memory_of(row_of(1));
  EXPECT_EQ(memory.peak.bytes, Bytes(0));
  EXPECT_EQ(memory.owner, -1);
}

// With one byte per activation, the peak is the number of chunks that the schedule declares in
// flight.
TEST(MemoryTimeline, HoldsTheActivationsThatSchedulesDeclare) {
  for (const Schedule* schedule : schedules()) {
    const PipelineShape shape = schedule->shape(4, schedule->needs_chunks ? 2 : 1, 8);
    const TaskGraph graph =
        pass_graph(schedule->passes(shape), shape, uniform_times(shape, picoseconds(10, 10, 10)));
    const Timeline timeline = simulate(graph).value();
    for (int stage = 0; stage < shape.stages; ++stage) {
      const auto peak =
          memory_timeline(graph.lists[static_cast<std::size_t>(stage)], timeline.of(stage)).peak;
      EXPECT_EQ(peak.bytes.value(), schedule->chunks_in_flight(shape, stage)) << schedule->name;
    }
  }
}

}  // namespace
}  // namespace trainyard
