// Plays a task graph in virtual time: discrete events, one thread, the same result to the bit on
// every run.
#pragma once

#include <string_view>

#include "model/expected.h"
#include "simulator/conditions.h"
#include "simulator/graph/task_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

// Fails, with a sentence that names the tasks and ranks, on a graph that is malformed or
// deadlocks, where a rank cannot be reached, where a group cannot run its algorithm and where a
// task ends beyond the clock.
Expected<Timeline> simulate(const TaskGraph& graph, const Conditions& conditions = {});

// The error of a step that the clock does not hold: `found` is what is known of its length.
Error beyond_clock(std::string_view found);

}  // namespace trainyard
