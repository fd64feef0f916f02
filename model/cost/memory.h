// Memory of one rank of each stage, by kind, at its peak: states by the precision recipe, optimizer
// and ZeRO stage; activations by what every operator keeps and how many micro-batches the schedule
// holds in flight; transients, and what the runtime takes. Handbook §7.
#pragma once

#include "model/job.h"
#include "model/plan/plan.h"
#include "model/units.h"

namespace trainyard {

struct MemoryByKind {
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;    // kept for backward by the micro-batches in flight
  Bytes recomputation;  // one layer's activations while it is recomputed
  Bytes logits;
  Bytes buffers;        // gathered parameters, buckets, all-to-all buffers, GEMM workspace
  Bytes runtime;        // context, communicators
  Bytes fragmentation;  // what the allocator reserves beyond what is allocated

  Bytes allocated() const {
    return parameters + gradients + optimizer + activations + recomputation + logits + buffers;
  }
  Bytes reserved() const { return allocated() + fragmentation; }
  Bytes device() const { return reserved() + runtime; }  // what the device must have
};

enum class MemoryPeak { forward_backward, optimizer_step };  // where the peak is reached

struct StageMemory {
  MemoryByKind at_peak;
  MemoryPeak peak = MemoryPeak::forward_backward;
};

}  // namespace trainyard
