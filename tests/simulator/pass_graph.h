// Turns a schedule's pass lists into a task graph with one rank per stage. The tests compare the
// simulator on this graph with the player of model/schedule, a second computation of the same
// times.
#pragma once

#include "model/schedule/play.h"
#include "model/schedule/schedule.h"
#include "simulator/graph/task_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Stages exchange messages of `message` bytes. Every chunk of a micro-batch holds one byte for its
// activations.
TaskGraph pass_graph(const PassList& passes, PipelineShape shape, const PlayTimes& times,
                     Bytes message = {});

// The start of a stage's first compute task and the end of its last one.
struct StageTimes {
  Picoseconds start{0}, end{0};
};
std::vector<StageTimes> stage_times(const TaskGraph& graph, const Timeline& timeline);
Picoseconds longest_span(const std::vector<StageTimes>& stages);

}  // namespace trainyard
