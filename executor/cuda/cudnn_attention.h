// Attention by cuDNN, if the program was built with the headers of cuDNN's frontend and
// libcudnn.so.9 is found at run time (dlopen). A graph is built for each shape when it is first
// met, and cuDNN is asked whether it has a kernel for it. Without a kernel or library the caller
// falls back on kernels of our own. Source: cuDNN documentation, "Scaled Dot Product Attention".
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

  // Takes whole causal sequences in bf16 or fp16 without windows and sinks. False: not supported,
  // nothing was done.
  virtual bool forward(const Queue& queue, const AttentionPlan& plan,
                       const AttentionOperands& of) = 0;
  // Uses a deterministic kernel, so that runs repeat themselves, unless that one needs more than a
  // GiB of memory beside its operands. False: as for forward().
  virtual bool backward(const Queue& queue, const AttentionPlan& plan, const AttentionOperands& of,
                        const AttentionGradients& gradients) = 0;
};

std::unique_ptr<CudnnAttention> make_cudnn_attention();
// Version of the library, such as "9.14.0"; empty where there is none.
std::string cudnn_version();

}  // namespace trainyard
