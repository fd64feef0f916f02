// Attention by cuDNN, through the headers of its frontend, where the program was built with them
// and the library is found when it runs (libcudnn.so.9, by dlopen): a graph for each shape, built
// when it is first met. It is asked whether it has a kernel; where it has none, or has no library,
// the caller has kernels of its own. Source: cuDNN documentation, "Scaled Dot Product Attention".
#pragma once

#include <memory>
#include <string>

#include "executor/cuda/kernels/kernels.h"

namespace trainyard {

class CudnnAttention {
 public:
  CudnnAttention() = default;
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;
  virtual ~CudnnAttention() = default;

  // Whole causal sequences in bf16 or fp16 without windows and sinks. False: nothing was done.
  virtual bool forward(const Queue& queue, const AttentionPlan& plan,
                       const AttentionOperands& of) = 0;
  // By a deterministic kernel, so that runs repeat themselves, unless that one wants more than a
  // GiB of memory beside its operands.
  virtual bool backward(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of,
                        const AttentionGradients& gradients) = 0;
};

std::unique_ptr<CudnnAttention> make_cudnn_attention();
// "9.14.0", of the library; empty where there is none.
std::string cudnn_version();

}  // namespace trainyard
