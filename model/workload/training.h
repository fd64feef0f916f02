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
  std::string release;  // of the stack; empty: not said
  double tokens = 0;    // of the whole run; 0: not said
};

// Bytes of an element of the gradient that is kept for the optimizer, and as it is reduced over
// data parallelism: the stack's, which says them of mixed precision. Weights without a master copy
// are what the optimizer updates, and autograd gives their gradients their own dtype (PyTorch; pure
// fp32 is 4 + 4 + 8 = 16 bytes a parameter).
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

// Of an element of a gradient that a rank has whole only until it is scattered (ZeRO 2 and 3). Of
// two units' that are there at a time one is made, in the weights' dtype, and one goes out, copied
// to that of the reduction (PyTorch, FSDP2: foreach_reduce): the mean of both.
inline double whole_gradient_bytes(const Training& training) {
  return (training.precision.weight_bytes + reduced_gradient_bytes(training)) / 2;
}

// Memory held for a logit at its peak, on each of so many tensor-parallel ranks.
inline double saved_logit_bytes(const Stack& stack, int tensor_parallel) {
  const bool parallel = tensor_parallel > 1 && stack.parallel_logit_bytes > 0;
  return parallel ? stack.parallel_logit_bytes : stack.saved_logit_bytes;
}

// Of the memory that a stack holds for a logit, the part that is its gradient: what the head's
// weight gradient reads, when the logits and all copies of them are gone.
inline double logit_gradient_bytes(const Training& training) {
  return std::min(training.precision.activation_bytes, training.stack.saved_logit_bytes / 2);
}

}  // namespace trainyard
