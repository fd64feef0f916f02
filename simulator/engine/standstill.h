// Why a simulation stands still: who waits for whom, up to where it closes into a cycle or reaches
// a rank that never comes.
#pragma once

#include <vector>

#include "model/expected.h"
#include "simulator/engine/meetings.h"
#include "simulator/graph/playlist.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {

struct StreamState {
  std::int32_t next = 0;  // tasks before it are done
  bool busy = false;      // with task `next`
};

struct Standstill {
  const TaskGraph& graph;
  const std::vector<Playlist>& lists;
  const std::vector<StreamState>& streams;  // by StreamId
  const Meetings& meetings;
};

// Requires: some stream has tasks left, and nothing is under way.
Error explain(const Standstill& state);

}  // namespace trainyard
