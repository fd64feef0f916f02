// A pass over units of several kinds, one by one, beside the communication of their parameters:
// what a dense layer does not hide of the experts that an MoE layer behind it gathers is on the
// way, whatever that one could hide. The same streams as in model/cost/sharding/overlap.h, whose
// closed form is that of layers of equal work.
#pragma once

#include "model/cost/sharding/overlap.h"
#include "model/units.h"

namespace trainyard {

// In the time of the pass beside its messages.
struct UnlikeUnit {
  Seconds work;
  Seconds before_experts;  // of `work`, what needs none of their weights
  Seconds gather, gather_of_experts;
  Seconds reduce;  // of all
};

class PassOfUnlikeUnits {
 public:
  // In the order of the pass.
  void add(const UnlikeUnit& unit);
  ShownInPass shown() const;

 private:
  Seconds link_, clock_;    // until when both are busy
  Seconds begun_;           // the unit before the last one had ended
  Seconds work_;            // of all units
  Seconds before_;          // what shows before the first unit
  Seconds left_to_reduce_;  // of the last unit, from its end on
  bool is_first_ = true;
};

}  // namespace trainyard
