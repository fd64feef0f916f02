// The result of a simulation: when every task of every rank started and ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/virtual_time.h"

namespace trainyard {

struct TaskTimes {
  Picoseconds start{0}, end{0};
  friend bool operator==(const TaskTimes&, const TaskTimes&) = default;
};

struct Timeline {
  std::vector<TaskTimes> times;    // rank after rank, in the order of their lists
  std::vector<std::size_t> first;  // of each rank, and one past the last
  Picoseconds makespan{0};         // from zero to the end of the last task
  std::int64_t events = 0;         // through the queue

  std::span<const TaskTimes> of(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return std::span(times).subspan(first[r], first[r + 1] - first[r]);
  }
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

}  // namespace trainyard
