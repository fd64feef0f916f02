// The nodes of a job: those at work, hot spares, and those in repair. Repair takes an exponentially
// distributed time; a repaired node joins the job if one is missing, else the spares.
#pragma once

#include <vector>

#include "simulator/engine/random.h"
#include "simulator/life/clock.h"

namespace trainyard {

class Nodes {
 public:
  Nodes(int spares, Seconds repair, std::uint64_t seed);

  void lose(int nodes, Nanoseconds now);
  void come_back(Nanoseconds now);  // takes back the nodes that are repaired by now
  int missing() const { return missing_; }
  Nanoseconds next_return() const;  // when the next node is repaired; kNever: none is in repair

 private:
  int spares_;
  double repair_;  // ns, mean
  RandomStream random_;
  int missing_ = 0;                   // nodes that the job lacks
  std::vector<Nanoseconds> returns_;  // a heap, the earliest in front
};

}  // namespace trainyard
