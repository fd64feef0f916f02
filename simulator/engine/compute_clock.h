// When compute tasks end. A task's duration depends on its rank's speed and on jitter when it
// begins; while communication of its rank is under way the task runs slower
// (Conditions::overlap_slowdown): with a slow-down of 0.2, 10 ms of compute beside a call of
// contention 1 take 10 / 0.8 = 12.5 ms. Whenever communication begins or ends, a running task is
// rescheduled; a version number tells its current end event from the outdated ones.
#pragma once

#include <vector>

#include "simulator/conditions.h"
#include "simulator/engine/event.h"
#include "simulator/engine/meetings.h"
#include "simulator/graph/task_graph.h"

namespace trainyard {

class ComputeClock {
 public:
  // Requires: `conditions` and `events` outlive the clock.
  ComputeClock(const Conditions& conditions, std::size_t ranks, Events& events);

  // A task begins on the compute stream of its rank.
  void begin(StreamId stream, std::int32_t task, Picoseconds duration);
  // A call of the rank begins or ends. `contention`: how far it slows compute, from 0 to 1.
  void communication_begins(std::int32_t rank, double contention);
  void communication_ends(std::int32_t rank, double contention);
  // Whether a task_ends event ends its compute task; false: the task was rescheduled since.
  bool ends(Event event);

 private:
  struct RankClock {
    StreamId stream = 0;
    bool running = false;
    std::int64_t contention = 0;  // sum over calls under way, in fixed point: exact
    std::uint32_t version = 0;
    std::size_t next_speed = 0;  // in `speeds`
    double speed = 1;
    double left = 0;  // ps, as if no communication slowed it
    Picoseconds updated{0};
    std::vector<SpeedChange> speeds;
  };

  double rate(const RankClock& clock) const;
  void add_contention(std::int32_t rank, std::int64_t contention);
  double speed(RankClock& clock) const;
  void advance(RankClock& clock) const;
  void schedule(RankClock& clock);

  const Conditions& conditions_;
  Events& events_;
  std::vector<RankClock> ranks_;
};

}  // namespace trainyard
