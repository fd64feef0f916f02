// What a task graph must fulfil before it can be played: every index names something, and every
// task's group has its rank. Linear in the graph, n log n in the members of its groups.
#pragma once

#include "model/expected.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {

// The sentence names the list and the task, or the rank and the group.
Expected<void> check_graph(const TaskGraph& graph);

}  // namespace trainyard
