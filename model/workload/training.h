// How the network is trained: batch, sequence, precision, optimizer and software stack.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "model/workload/optimizer.h"
#include "model/workload/precision.h"
#include "model/workload/stack.h"

namespace trainyard {

struct Training {
  std::int64_t global_batch = 0;     // B, sequences a step
  std::int64_t sequence_length = 0;  // s, tokens
  PrecisionRecipe precision;
  Optimizer optimizer;
  Stack stack;
  std::string release;  // of the stack, "25.04…"; empty: not given
  double tokens = 0;    // of the whole run; 0: not given
};

// Bytes of a gradient element as it is kept for the optimizer (kept_gradient_bytes) and as it is
// reduced over data parallelism (reduced_gradient_bytes). Both are the stack's figures, which are
// for mixed precision. Without a master copy autograd gives a gradient the dtype of its weight
// (PyTorch), so it has at least that size: pure fp32 is 4 + 4 + 8 = 16 bytes a parameter.
inline double with_master_or_weights(const Training& training, double of_stack) {
  if (training.precision.master_weight_bytes > 0) return of_stack;
  return std::max(of_stack, training.precision.weight_bytes);
}
inline double kept_gradient_bytes(const Training& training) {
  return with_master_or_weights(training, training.stack.gradient_bytes);
}
inline double reduced_gradient_bytes(const Training& training) {
  return with_master_or_weights(training, training.stack.reduction_bytes);
}

// Bytes of an element of an unsharded gradient, which exists only until it is reduce-scattered
// (ZeRO 2 and 3). Gradients of two units exist at a time: one is being made, in the dtype of the
// weights; the other is on its way, copied to the dtype of the reduction (PyTorch, FSDP2:
// foreach_reduce). This is the mean of the two.
inline double whole_gradient_bytes(const Training& training) {
  return (training.precision.weight_bytes + reduced_gradient_bytes(training)) / 2;
}

// Bytes held for each logit at the peak of memory, on each of `tensor_parallel` ranks.
inline double saved_logit_bytes(const Stack& stack, int tensor_parallel) {
  const bool parallel = tensor_parallel > 1 && stack.parallel_logit_bytes > 0;
  return parallel ? stack.parallel_logit_bytes : stack.saved_logit_bytes;
}

// The part of saved_logit_bytes that is the logit's gradient. The head's weight gradient reads it
// when the logits and all copies of them are gone.
inline double logit_gradient_bytes(const Training& training) {
  return std::min(training.precision.activation_bytes, training.stack.saved_logit_bytes / 2);
}

}  // namespace trainyard
