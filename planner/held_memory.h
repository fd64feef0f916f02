// What fills the memory of a plan, which decides what would make it fit.
#pragma once

#include "model/cost/estimate.h"

namespace trainyard {

// What the fullest stage of a plan holds on a device, by what would reduce it: states need
// sharding, offload or more devices; for activations a smaller micro-batch or recomputation helps,
// too.
struct HeldMemory {
  Bytes states;       // parameters, gradients, optimizer
  Bytes activations;  // kept, recomputed, logits
  Bytes others;       // buffers, runtime, fragmentation
  bool by_states() const { return states >= activations; }
};
HeldMemory held_memory(const Estimate& estimate);

}  // namespace trainyard
