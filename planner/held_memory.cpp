#include "planner/held_memory.h"

namespace trainyard {

HeldMemory held_memory(const Estimate& estimate) {
  if (estimate.stages.empty()) return {};
  const MemoryByKind& held =
      estimate.stages[static_cast<std::size_t>(estimate.fullest_stage)].memory.at_peak;
  const Bytes states = held.parameters + held.gradients + held.optimizer;
  const Bytes activations = held.activations + held.recomputation + held.logits;
  return {states, activations, held.device() - states - activations};
}

}  // namespace trainyard
