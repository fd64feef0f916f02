// A pass over units of unlike work, one by one, beside the communication of their parameters: a
// dense layer may be too short to hide the gather of the next MoE layer's experts, and the long MoE
// layer cannot make up for it. The streams are those of model/cost/sharding/overlap.h, whose closed
// form needs layers of equal work.
#pragma once

#include "model/cost/sharding/overlap.h"
#include "model/units.h"

namespace trainyard {

// Messages are in seconds of the pass in which they get done beside it.
struct UnlikeUnit {
  Seconds work;
  Seconds before_experts;             // the part of `work` that needs no weights of routed experts
  Seconds gather, gather_of_experts;  // of all other weights; of the routed experts'
  Seconds reduce;                     // of all gradients
};

class PassOfUnlikeUnits {
 public:
  // Takes the units in the order of the pass.
  void add(const UnlikeUnit& unit);
  ShownInPass shown() const;

 private:
  Seconds link_, clock_;    // when the messages, and the units, so far have ended
  Seconds begun_;           // when the last unit could begin: the one before it had ended
  Seconds work_;            // of all units
  Seconds before_;          // wait before the first unit
  Seconds left_to_reduce_;  // the last unit's reduction, which begins at its end
  bool is_first_ = true;
};

}  // namespace trainyard
