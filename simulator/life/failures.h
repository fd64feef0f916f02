// What happens to a run and when: independent streams of failures of devices, racks and leaf
// switches (or a trace instead), false alarms, silent corruption, stragglers and maintenance
// windows, merged by time. Exponential but for the devices', whose intervals may be Weibull for the
// job as a whole (a renewal process in its steady state, as fitted to whole systems: failures are
// as many a day at the beginning as later), and maintenance, which is periodic.
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
  int nodes = 0;  // lost
};

class Failures {
 public:
  // `settings` outlives it.
  Failures(const LifeSettings& settings, std::uint64_t seed);

  Nanoseconds next_at() const { return next_at_; }
  Disturbance take();         // the next one
  double per_second() const;  // on average, those of a trace apart

  // Of nodes, on average, those of a trace apart.
  struct Losses {
    double nodes = 0;          // a second
    double squared_nodes = 0;  // … of one failure squared, a second
    int most_at_once = 0;
  };
  Losses losses() const;

 private:
  struct Stream {
    Trouble trouble = Trouble::failure;
    double mean = 0;  // ns
    int nodes = 0;    // −1: one, with the probability of hardware_share
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
  std::size_t next_ = 0;    // stream; streams_.size(): the trace
  std::size_t traced_ = 0;  // entries of the trace that happened
  Nanoseconds next_at_ = kNever;
};

}  // namespace trainyard
