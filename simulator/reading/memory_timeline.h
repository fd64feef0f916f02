// The memory of one rank over time, from the buffers of its task list and the times of its tasks. A
// buffer is allocated when one task starts and freed when another one ends; memory that is freed at
// an instant can be allocated again at the same instant.
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
  std::vector<MemoryPoint> points;  // in order of time, at each change; the first at time 0
  MemoryPoint peak;                 // the largest; the earliest if there are several
  std::vector<Bytes> at_peak;       // bytes of each Buffer::owner at the peak
  int owner = -1;                   // who holds most at the peak; −1: nobody holds anything
};

// O(b log b) for b buffers. Requires: `times` are those of the list's tasks.
MemoryTimeline memory_timeline(const TaskList& list, std::span<const TaskTimes> times);

}  // namespace trainyard
