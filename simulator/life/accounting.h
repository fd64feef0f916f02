// Where the wall time of a run goes. Every nanosecond is booked once, so the parts sum to the run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "simulator/life/clock.h"

namespace trainyard {

enum class Spent {
  useful,      // training that was never rolled back, at full speed
  checkpoint,  // training blocked by checkpoints
  lost,        // training that was rolled back
  detection,
  diagnosis,
  rescheduling,
  starting,
  loading,
  warming_up,
  waiting,  // for a node to be repaired
  maintenance,
  degraded,  // extra time for stragglers and missing nodes, over full speed
};
inline constexpr std::size_t kSpentKinds = 12;
std::string_view name_of(Spent kind);

class Accounts {
 public:
  Nanoseconds& operator[](Spent kind) { return times_[static_cast<std::size_t>(kind)]; }
  Nanoseconds operator[](Spent kind) const { return times_[static_cast<std::size_t>(kind)]; }
  Nanoseconds total() const {
    return std::accumulate(times_.begin(), times_.end(), Nanoseconds(0));
  }

 private:
  std::array<Nanoseconds, kSpentKinds> times_{};
};

// One simulated run.
struct Life {
  Accounts spent;
  bool finished = false;           // all work was done before the calendar's end
  std::int64_t interruptions = 0;  // failures, false alarms, corruption found
  std::int64_t planned = 0;        // stops for maintenance, evictions, growing back
  std::int64_t nodes_lost = 0;
  std::int64_t checkpoints = 0;

  Nanoseconds wall() const { return spent.total(); }
  double goodput() const {
    const Nanoseconds all = wall();
    return all.count() == 0 ? 1 : to_seconds(spent[Spent::useful]) / to_seconds(all);
  }
};

}  // namespace trainyard
