// When compute tasks end: their rank's speed, jitter, and the time they lose while communication of
// their rank is under way. A task that loses time is rescheduled when communication begins or ends,
// so its end carries a version.
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

  // The rank's task begins on its compute stream.
  void begin(StreamId stream, std::int32_t task, Picoseconds duration);
  // A call that the rank takes part in begins or ends; how far it slows compute, from 0 to 1.
  void communication_begins(std::int32_t rank, double contention);
  void communication_ends(std::int32_t rank, double contention);
  // Of a task_ends event of a compute task: whether it is over. False: it was rescheduled.
  bool ends(Event event);

 private:
  struct RankClock {
    StreamId stream = 0;
    bool running = false;
    std::int64_t contention = 0;  // of the calls under way, in units that add up exactly
    std::uint32_t version = 0;
    std::size_t next_speed = 0;  // in its changes
    double speed = 1;
    double left = 0;  // ps at full speed
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
