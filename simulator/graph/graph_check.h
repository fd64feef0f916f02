// Checks a task graph before it is played: every index is in range, and every task's group has its
// rank as a member in the right role. O(tasks + dependencies), and n log n in the members of
// groups.
#pragma once

#include "model/expected.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {

// The error names the list and the task, or the rank and the group.
Expected<void> check_graph(const TaskGraph& graph);

}  // namespace trainyard
