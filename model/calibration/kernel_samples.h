// Measured kernels as values: what ran and how long it took. They are rows of the operator tables
// (scenarios/kernels/tables.h reads them). Fits and scores take lists of one kind.
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
  bool with_cast = true;  // in fp8: `time` includes the cast of the activation [m×k]
};

// Causal attention, forward. With a window `shape.sliding` is true and `shape.keys` is the window.
struct AttentionSample {
  Dtype dtype = Dtype::bf16;
  AttentionShape shape;
  Seconds time;
};

// The routed experts of one layer: both GEMMs, activation and permutation. `tokens` are those of
// the whole expert-parallel group; `time` is that of the slowest rank.
struct ExpertSample {
  Dtype dtype = Dtype::bf16;
  double tokens = 0, hidden = 0, ffn = 0;
  int experts_per_token = 1, experts = 1;
  int tensor_parallel = 1, expert_parallel = 1;
  double skew = 0;  // exponent of the power law by which tokens choose experts; 0: balanced
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
