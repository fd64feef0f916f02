// Explains why a simulation stands still: follows which task waits for which, until the chain
// closes into a cycle (a deadlock) or reaches a rank that never joins.
#pragma once

#include <vector>

#include "model/expected.h"
#include "simulator/engine/meetings.h"
#include "simulator/graph/playlist.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {

struct StreamState {
  std::int32_t next = 0;  // position of the first task that is not done
  bool busy = false;      // task `next` has begun
};

struct Standstill {
  const TaskGraph& graph;
  const std::vector<Playlist>& lists;
  const std::vector<StreamState>& streams;  // by StreamId
  const Meetings& meetings;
};

// The error to report. Requires: some stream has tasks left, and no event is pending.
Error explain(const Standstill& state);

}  // namespace trainyard
