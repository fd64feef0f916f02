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

// A link of the fabric (2e and 2e + 1: the graph's e-th edge, both ways).
struct LinkTraffic {
  std::int32_t link = 0;
  BytesPerSecond capacity;
  Bytes carried;
  friend bool operator==(const LinkTraffic&, const LinkTraffic&) = default;
};

struct Timeline {
  std::vector<TaskTimes> times;    // rank after rank, in the order of their lists
  std::vector<std::size_t> first;  // of each rank, and one past the last
  Picoseconds makespan{0};         // from zero to the end of the last task
  std::int64_t events = 0;         // through the queue
  std::vector<LinkTraffic> links;  // that carried anything, in order; of all devices

  std::span<const TaskTimes> of(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return std::span(times).subspan(first[r], first[r + 1] - first[r]);
  }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

}  // namespace trainyard
