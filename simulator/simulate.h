// Plays a task graph in virtual time: discrete events, one thread, the same result to the bit on
// every run.
#pragma once

#include "model/expected.h"
#include "simulator/task_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Communication takes no time. Fails, with a sentence that names the tasks and ranks, on a graph
// that is malformed or dead-locks.
Expected<Timeline> simulate(const TaskGraph& graph);

}  // namespace trainyard
