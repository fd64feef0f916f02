// The result of a simulation: when every task of every rank started and ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/units.h"
#include "simulator/virtual_time.h"

namespace trainyard {

struct TaskTimes {
  Picoseconds start{0}, end{0};
  friend bool operator==(const TaskTimes&, const TaskTimes&) = default;
};

// The bytes that one direction of a link carried. Links 2e and 2e + 1 are the two directions of the
// topology graph's e-th edge.
struct LinkTraffic {
  std::int32_t link = 0;
  BytesPerSecond capacity;
  Bytes carried;
  friend bool operator==(const LinkTraffic&, const LinkTraffic&) = default;
};

struct Timeline {
  std::vector<TaskTimes> times;    // of rank 0's tasks in list order, then rank 1's, …
  std::vector<std::size_t> first;  // of each rank's first task in `times`; one more at the end
  Picoseconds makespan{0};         // from zero to the end of the last task
  std::int64_t events = 0;         // handled by the event queue
  std::vector<LinkTraffic> links;  // those that carried anything, of all devices even if folded

  std::span<const TaskTimes> of(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return std::span(times).subspan(first[r], first[r + 1] - first[r]);
  }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

}  // namespace trainyard
