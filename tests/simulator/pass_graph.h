// A schedule's pass lists as a task graph, a rank a stage: what connects model/schedule's player,
// the second road of these tests, with the simulator.
#pragma once

#include "model/schedule/play.h"
#include "model/schedule/schedule.h"
#include "simulator/graph/task_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Messages of `message` bytes between stages, and a buffer of one byte for the activations of a
// chunk.
TaskGraph pass_graph(const PassList& passes, PipelineShape shape, const PlayTimes& times,
                     Bytes message = {});

// From the start of a stage's first compute task to the end of its last.
struct StageTimes {
  Picoseconds start{0}, end{0};
};
std::vector<StageTimes> stage_times(const TaskGraph& graph, const Timeline& timeline);
Picoseconds longest_span(const std::vector<StageTimes>& stages);

}  // namespace trainyard
