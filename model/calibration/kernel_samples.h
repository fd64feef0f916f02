// Measured kernels as values: what ran, and how long it took. Rows of the operator tables
// (scenarios/kernels/tables.h reads them); fits and scores take lists of one family.
#pragma once

#include <variant>
#include <vector>

#include "model/cluster/device.h"
#include "model/units.h"
#include "model/workload/operators.h"

namespace trainyard {

// One dense GEMM.
struct GemmSample {
  Dtype dtype = Dtype::bf16;
  GemmShape shape;
  Seconds time;
  bool with_cast = true;  // of the activation [m×k]: the time includes it where it is in fp8
};

// Causal attention, forward. A window is in `shape.keys`, with `shape.sliding`.
struct AttentionSample {
  Dtype dtype = Dtype::bf16;
  AttentionShape shape;
  Seconds time;
};

// The routed experts of one layer: both GEMMs, activation and permutation. `tokens` is of the whole
// expert-parallel group; the time is the slowest rank's.
struct ExpertSample {
  Dtype dtype = Dtype::bf16;
  double tokens = 0, hidden = 0, ffn = 0;
  int experts_per_token = 1, experts = 1;
  int tensor_parallel = 1, expert_parallel = 1;
  double skew = 0;  // exponent of the power law that tokens are routed by; 0: balanced
  Seconds time;
};

// One collective inside a node; bytes as handbook §6 counts the message.
struct CollectiveSample {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int gpus = 2;
  Bytes bytes;
  Seconds time;
};

using KernelSamples = std::variant<std::vector<GemmSample>, std::vector<AttentionSample>,
                                   std::vector<ExpertSample>, std::vector<CollectiveSample>>;

}  // namespace trainyard
