// What fills the memory of a plan, which decides what would make it fit.
#pragma once

#include "model/cost/estimate.h"

namespace trainyard {

// What the fullest stage of a plan holds on a device, by what would have to be changed: states by
// sharding, offload or more devices, activations by micro-batch or recomputation too.
struct HeldMemory {
  Bytes states;       // parameters, gradients, optimizer
  Bytes activations;  // kept, computed again, logits
  Bytes others;       // buffers, runtime, fragmentation
  bool by_states() const { return states >= activations; }
};
HeldMemory held_memory(const Estimate& estimate);

}  // namespace trainyard
