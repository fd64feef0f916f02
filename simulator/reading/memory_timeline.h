// Memory of one rank over time, read off the buffers of its task list and the times of its tasks.
// A buffer is taken when the task that allocates it starts and given back when the task that frees
// it ends; at one instant, what is given back can be taken again.
#pragma once

#include <span>
#include <vector>

#include "model/units.h"
#include "simulator/graph/task_graph.h"
#include "simulator/timeline.h"

namespace trainyard {

struct MemoryPoint {
  Picoseconds time{0};
  Bytes bytes;  // from this time on
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

struct MemoryTimeline {
  std::vector<MemoryPoint> points;  // by time, where it changes; the first at zero
  MemoryPoint peak;                 // the first time of it
  std::vector<Bytes> at_peak;       // by owner
  int owner = -1;                   // who holds most at the peak; −1: nobody holds anything
};

// O(b log b) for b buffers. Requires: times of the list's tasks.
MemoryTimeline memory_timeline(const TaskList& list, std::span<const TaskTimes> times);

}  // namespace trainyard
