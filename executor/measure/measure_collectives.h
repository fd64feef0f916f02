// How long a backend's collectives take among ranks that run together, by operation, size and
// number of ranks, and how much arithmetic slows down beside one. Each time is the median over the
// runs of the slowest rank's time (executor/measure/timing.h).
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
  double overlap_slowdown = 0;  // share of its speed that arithmetic loses beside an all-reduce
  bool staged = false;          // ranks share a device and go through the host's memory
};

// One collective on a fixed number of floats, carried out by all members of a group together.
class TimedExchange {
 public:
  TimedExchange() = default;
  TimedExchange(const TimedExchange&) = delete;
  TimedExchange& operator=(const TimedExchange&) = delete;
  virtual ~TimedExchange() = default;
  // Seconds of one exchange when `in_a_row` follow each other; 1 … most_in_a_row().
  virtual Expected<double> time_of_one(int in_a_row) = 0;
  // More than one where exchanges run asynchronously: launching one is then hidden behind the one
  // before, as in a step, and the first one connects the ranks.
  virtual int most_in_a_row() const { return 1; }
};

// A group of the first so many ranks that exchange a backend's numbers.
class CalibrationGroup {
 public:
  CalibrationGroup() = default;
  CalibrationGroup(const CalibrationGroup&) = delete;
  CalibrationGroup& operator=(const CalibrationGroup&) = delete;
  virtual ~CalibrationGroup() = default;
  virtual Transport& host() = 0;  // the host's transport among the same ranks
  // An exchange of `count` floats; for `send`, there and back. It may be used from any thread, one
  // at a time.
  virtual std::unique_ptr<TimedExchange> exchange(CollectiveOperation operation, int count) = 0;
};

// What a backend brings to the measurement.
struct CalibrationParty {
  int sizes = 14;         // number of sizes: 1 KiB, 2 KiB, …
  int reduced = 1 << 18;  // floats in the all-reduce that runs beside arithmetic
  // Makes the group of the first `ranks` ranks, and a null pointer on the others; all ranks call
  // it.
  std::function<Expected<std::unique_ptr<CalibrationGroup>>(int ranks)> group;
  // Computes for about a millisecond and returns how long that took, in s.
  std::function<double()> product;
};
// The party of the CPU backend. `transport` makes a transport among the first `ranks` ranks, and a
// null pointer on the others.
CalibrationParty host_party(std::function<std::unique_ptr<Transport>(int ranks)> transport);

struct CalibrationRanks {
  Transport& all;
  int per_host;  // ranks per host, consecutive; the same on every host
  CalibrationParty party;
  std::function<void(double fraction)> progress;  // of this rank's measurements
};
// Measures among 2, 4, … and all ranks of the first host, then among all ranks of 2, 4, … and all
// hosts. Collective over all ranks of `world`. Rank 0 gets all results, another rank those of the
// groups that it is in.
Expected<GroupSamples> measure_collectives(const CalibrationRanks& world, Seconds budget);

}  // namespace trainyard
