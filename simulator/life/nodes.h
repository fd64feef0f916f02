// The nodes of a job: those at work, hot spares, and those in repair, which come back after an
// exponentially distributed time and fill the job before the spares.
#pragma once

#include <vector>

#include "simulator/engine/random.h"
#include "simulator/life/clock.h"

namespace trainyard {

class Nodes {
 public:
  Nodes(int spares, Seconds repair, std::uint64_t seed);

  void lose(int nodes, Nanoseconds now);
  void come_back(Nanoseconds now);  // those that are repaired by now
  int missing() const { return missing_; }
  Nanoseconds next_return() const;  // kNever: none is in repair

 private:
  int spares_;
  double repair_;  // ns, mean
  RandomStream random_;
  int missing_ = 0;                   // of the job's
  std::vector<Nanoseconds> returns_;  // a heap, the earliest in front
};

}  // namespace trainyard
