// A backend's operations inside whole training steps of small networks, where operands come from
// memory as the operations before have left them: what a loop over one operation does not see.
// Samples are those of a step on one rank with Adam: on the CPU in fp32, on a GPU in bf16 of
// networks as wide as it needs to be busy.
#pragma once

#include <functional>
#include <vector>

#include "executor/backend.h"
#include "executor/measure/timing.h"
#include "model/calibration/kernel_samples.h"

namespace trainyard {

// A memory-bound operation, or many: traffic as the operators count it.
struct TrafficSample {
  Bytes traffic;
  Seconds time;
};

struct StepSamples {
  // Of a weight's gradient without what adding to the main gradient reads and writes, which
  // `accumulated` has, in the same order.
  std::vector<GemmSample> gemm;
  std::vector<Bytes> accumulated;
  std::vector<AttentionSample> attention;
  Seconds attention_forward, attention_gradient;  // all of them together
  TrafficSample update;          // norm of the gradient, optimizer, cleared gradients
  TrafficSample memory_bound;    // norms, activations, residuals, rotary, embedding
  double memory_bound_runs = 0;  // of them
  double logits = 0;             // elements of the cross-entropies
  Seconds cross_entropy, cross_entropy_gradient;
  double between = 0;  // time between operations, over that of the operations
  std::vector<MeasuredPoint> points;
};

struct StepLimits {
  Seconds budget{20};
  std::function<void(double fraction)> progress;
  std::function<bool()> interrupted;
  BackendKind backend = BackendKind::cpu;
};
// Of eight networks; of one at least, and of fewer than all where the budget is spent.
Expected<StepSamples> measure_steps(const StepLimits& limits);

}  // namespace trainyard
