// Measures a backend's operations inside whole training steps of small networks, where operands
// come from memory as the operations before have left them. A loop over one operation does not show
// that. Steps run on one rank with Adam: on the CPU in fp32, on a GPU in bf16 with networks wide
// enough to keep it busy.
#pragma once

#include <functional>
#include <vector>

#include "executor/backend.h"
#include "executor/measure/timing.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

// One or more memory-bound operations: their memory traffic, as the operators count it, and their
// time.
struct TrafficSample {
  Bytes traffic;
  Seconds time;
};

struct StepSamples {
  // The time of a weight gradient's GEMM includes adding to the main gradient. `accumulated`, in
  // the same order, has the bytes that this reads and writes; 0 for other GEMMs.
  std::vector<GemmSample> gemm;
  std::vector<Bytes> accumulated;
  std::vector<AttentionSample> attention;
  Seconds attention_forward, attention_gradient;  // of all attention operations together
  TrafficSample update;          // gradient norm, optimizer step, clearing gradients
  TrafficSample memory_bound;    // norms, activations, residuals, rotary, embedding
  double memory_bound_runs = 0;  // number of memory-bound operations run
  double logits = 0;             // elements of the logits in all cross-entropies
  Seconds cross_entropy, cross_entropy_gradient;
  double between = 0;  // time between operations over time inside them
  std::vector<MeasuredPoint> points;
};

struct StepLimits {
  Seconds budget{20};
  std::function<void(double fraction)> progress;
  std::function<bool()> interrupted;
  BackendKind backend = BackendKind::cpu;
};
// Measures eight networks, or fewer, but at least one, where the budget is spent.
Expected<StepSamples> measure_steps(const StepLimits& limits);

}  // namespace trainyard
