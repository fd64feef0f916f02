// Plays a task graph in virtual time, as a discrete-event simulation on one thread. The result is
// the same to the bit on every run.
#pragma once

#include <string_view>

#include "model/expected.h"
#include "simulator/conditions.h"
#include "simulator/graph/task_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Fails, with a sentence that names the tasks and ranks, where the graph is malformed or deadlocks,
// a rank cannot be reached, a group cannot run its algorithm, or a task ends beyond the clock's
// range.
Expected<Timeline> simulate(const TaskGraph& graph, const Conditions& conditions = {});

// The error for a step that is longer than the clock's range; `found` says what is known of its
// length.
Error beyond_clock(std::string_view found);

}  // namespace trainyard
