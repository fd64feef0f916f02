// What disturbs a run, and when: independent streams of failures of devices, racks and leaf
// switches (or a trace of failures instead), false alarms, silent corruption, stragglers and
// maintenance windows, merged by time. Intervals are exponential, with two exceptions. Those
// between device failures of the whole job may be Weibull, a renewal process in its steady state,
// as fitted to whole systems: failures are as frequent at the beginning of the run as later.
// Maintenance is periodic.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/engine/random.h"
#include "simulator/life/clock.h"
#include "simulator/life/settings.h"

namespace trainyard {

enum class Trouble { failure, false_alarm, silent, straggler, maintenance };

struct Disturbance {
  Trouble trouble = Trouble::failure;
  Nanoseconds at = kNever;
  int nodes = 0;  // nodes lost
};

class Failures {
 public:
  // Requires: `settings` outlives it.
  Failures(const LifeSettings& settings, std::uint64_t seed);

  Nanoseconds next_at() const { return next_at_; }
  Disturbance take();         // takes the next disturbance
  double per_second() const;  // mean rate of all disturbances, without a trace's

  // Mean losses of nodes, without those of a trace.
  struct Losses {
    double nodes = 0;          // nodes lost a second
    double squared_nodes = 0;  // sum over a second's failures of their nodes squared
    int most_at_once = 0;
  };
  Losses losses() const;

 private:
  struct Stream {
    Trouble trouble = Trouble::failure;
    double mean = 0;  // ns
    int nodes = 0;    // lost; −1: one with probability hardware_share, else none
    bool periodic = false;
    double weibull_shape = 1;
    RandomStream random;
    Nanoseconds at = kNever;
  };
  void add(Trouble trouble, Seconds mtbf, double parts, int nodes);
  void add_failures();
  static double weibull_scale(const Stream& stream);
  static void draw(Stream& stream);
  static void draw_first(Stream& stream);
  static void advance(Stream& stream, double wait);
  void find_next();
  Disturbance take_traced();

  const LifeSettings& settings_;
  std::uint64_t seed_;
  std::vector<Stream> streams_;
  std::size_t next_ = 0;    // index of the stream; streams_.size(): the trace
  std::size_t traced_ = 0;  // entries of the trace that happened
  Nanoseconds next_at_ = kNever;
};

}  // namespace trainyard
