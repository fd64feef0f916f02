// How long a backend's collectives take among ranks that run together, by operation, size and
// number of ranks, and what arithmetic loses while one runs beside it. Times are medians of the
// slowest rank's (executor/measure/timing.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/measure/timing.h"
#include "executor/transport/transport.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

struct TimedCollective {
  CollectiveSample sample;
  Timing timing;
};
struct GroupSamples {
  std::vector<TimedCollective> collectives;
  double overlap_slowdown = 0;  // share of its pace that arithmetic loses beside an all-reduce
  bool staged = false;          // ranks share a device: through the host's memory
};

// One operation on so many floats, by all members of a group together.
class TimedExchange {
 public:
  TimedExchange() = default;
  TimedExchange(const TimedExchange&) = delete;
  TimedExchange& operator=(const TimedExchange&) = delete;
  virtual ~TimedExchange() = default;
  // How long one takes of so many in a row, in s; 1 … most_in_a_row().
  virtual Expected<double> time_of_one(int in_a_row) = 0;
  // More than one where it runs after it was handed over: handing it over is hidden behind the one
  // before, as it is in a step, and the first one connects the ranks.
  virtual int most_in_a_row() const { return 1; }
};

// The first so many ranks, and how a backend's numbers go between them.
class CalibrationGroup {
 public:
  CalibrationGroup() = default;
  CalibrationGroup(const CalibrationGroup&) = delete;
  CalibrationGroup& operator=(const CalibrationGroup&) = delete;
  virtual ~CalibrationGroup() = default;
  virtual Transport& host() = 0;  // among the same ranks
  // Of `send` there and back. One thread at a time uses it, whichever.
  virtual std::unique_ptr<TimedExchange> exchange(CollectiveOperation operation, int count) = 0;
};

// What a backend measures with.
struct CalibrationParty {
  int sizes = 14;         // 1 KiB, 2 KiB, …
  int reduced = 1 << 18;  // floats that are reduced beside arithmetic
  // Nothing on ranks beyond the first so many; all ranks call it.
  std::function<Expected<std::unique_ptr<CalibrationGroup>>(int ranks)> group;
  std::function<double()> product;  // arithmetic of about a millisecond: how long it took, in s
};
// By the CPU backend; `transport`: among the first so many ranks, nothing on the others.
CalibrationParty host_party(std::function<std::unique_ptr<Transport>(int ranks)> transport);

struct CalibrationRanks {
  Transport& all;
  int per_host;  // of them, in the order of ranks; the same on every host
  CalibrationParty party;
  std::function<void(double fraction)> progress;  // of what this rank has done
};
// Among 2, 4, … and all ranks of a host, then all ranks of 2, 4, … and all hosts. Collective over
// all ranks of `world`; all find the same.
Expected<GroupSamples> measure_collectives(const CalibrationRanks& world, Seconds budget);

}  // namespace trainyard
