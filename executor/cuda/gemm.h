// Matrix products by cuBLASLt of row-major operands, with sums in float. The library chooses the
// kernel, once for each shape. For operands in 8 bits it needs each of them row by row along the
// summed dimension ("TN" in cuBLAS's words, the one layout that compute capability 9.0 has) and a
// multiple of 16 elements wide (cuBLAS documentation, cublasLtMatmul). An operand that lies the
// other way is transposed into a copy first; where the width does not fit, the same numbers are
// multiplied in bf16, which holds each of them exactly.
#pragma once

#include <cublasLt.h>

#include <map>
#include <string>
#include <vector>

#include "executor/cuda/queue.h"

namespace trainyard {

// A matrix of `rows` × `columns` whose rows begin `leading` elements apart.
struct GemmOperand {
  void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, leading = 0;
  bool transposed = false;
  Scales scales;
  std::int64_t size() const { return rows * columns; }
};
GemmOperand operand_of(const View& view);
// `count` columns of it, from `first` on.
GemmOperand columns_of(const View& view, std::int64_t first, std::int64_t count);
GemmOperand transposed(GemmOperand operand);

class Gemm {
 public:
  explicit Gemm(CudaStatus& status);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // c = a·b, or c += a·b with `add`. Types that the library does not take together are converted to
  // fp32 first. `fast`: operands in 8 bits may be summed with fewer bits
  // (CUBLASLT_MATMUL_DESC_FAST_ACCUM), as Transformer Engine does in forward passes alone
  // (fp8_gemm_fprop of Float8CurrentScaling in transformer_engine/common/recipe, _2X_ACC_FPROP,
  // _2X_ACC_DGRAD and _2X_ACC_WGRAD in transformer_engine/pytorch/module/base.py).
  void multiply(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                const GemmOperand& c, bool add, bool fast = false);

  // Most shapes whose kernels are remembered: an expert has another number of rows in every
  // micro-batch, so there is no end of them.
  static constexpr std::size_t kMostRemembered = 4096;
  std::size_t remembered() const { return choices_.size(); }

 private:
  struct Choice {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool found = false;
  };
  struct Narrow;
  using Key = std::vector<std::int64_t>;

  // For operands that are not both in 8 bits.
  void multiply_wide(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                     const GemmOperand& c, bool add);
  // For operands that are both in 8 bits; false: the library does not take them.
  bool multiply_narrow(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                       const GemmOperand& c, bool add, bool fast);
  void multiply_in_bf16(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                        const GemmOperand& c, bool add);
  void set_scales(const Choice& choice, const GemmOperand& a, const GemmOperand& b);
  void run(const Queue& queue, const Choice& choice, const GemmOperand& a, const GemmOperand& b,
           const GemmOperand& c, bool add);
  // Requires: the library takes the types together.
  void multiply_alike(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                      const GemmOperand& c, bool add);
  void check(cublasStatus_t status, const char* call);
  const Choice& choice_for(const GemmOperand& a, const GemmOperand& b, const GemmOperand& c,
                           bool add, bool fast);
  void describe(Choice& choice, const Key& key);
  void choose(Choice& choice, const Key& key);
  void forget_choices();
  void* workspace_of(const Queue& queue);

  CudaStatus& status_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Choice> choices_;
  std::map<cudaStream_t, void*> workspaces_;
};

}  // namespace trainyard
