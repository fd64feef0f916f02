// Matrix products by cuBLASLt: row-major operands, sums in float. The library's own choice of
// kernel, asked for once for each shape. Operands in 8 bits go to it as they are where it takes
// them: each row by row along what is summed over ("TN" in cuBLAS's words, the one layout that
// compute capability 9.0 has), by transposed copies where they lie the other way, and a multiple of
// 16 elements wide (cuBLAS documentation, cublasLtMatmul). Else the same numbers are taken in bf16,
// which holds each of them exactly.
#pragma once

#include <cublasLt.h>

#include <map>
#include <string>
#include <vector>

#include "executor/cuda/queue.h"

namespace trainyard {

// A matrix of `rows` × `columns` among rows that are `leading` elements apart.
struct GemmOperand {
  void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0, leading = 0;
  bool transposed = false;
  Scales scales;
  std::int64_t size() const { return rows * columns; }
};
GemmOperand operand_of(const View& view);
// Columns first … of it.
GemmOperand columns_of(const View& view, std::int64_t first, std::int64_t count);
GemmOperand transposed(GemmOperand operand);

class Gemm {
 public:
  explicit Gemm(CudaStatus& status);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // c = a·b, or += it; what the library does not take together is made fp32 first. `fast`: what
  // is in 8 bits may be summed with fewer bits (CUBLASLT_MATMUL_DESC_FAST_ACCUM), as Transformer
  // Engine has it in forward passes alone (fp8_gemm_fprop of Float8CurrentScaling in
  // transformer_engine/common/recipe, _2X_ACC_FPROP, _2X_ACC_DGRAD and _2X_ACC_WGRAD in
  // transformer_engine/pytorch/module/base.py).
  void multiply(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                const GemmOperand& c, bool add, bool fast = false);

  // Shapes whose kernels are remembered. Bounded, for an expert has another number of rows in every
  // micro-batch.
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

  // Not both in 8 bits.
  void multiply_wide(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                     const GemmOperand& c, bool add);
  // Both in 8 bits; false: the library does not take them.
  bool multiply_narrow(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                       const GemmOperand& c, bool add, bool fast);
  void multiply_in_bf16(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                        const GemmOperand& c, bool add);
  void set_scales(const Choice& choice, const GemmOperand& a, const GemmOperand& b);
  void run(const Queue& queue, const Choice& choice, const GemmOperand& a, const GemmOperand& b,
           const GemmOperand& c, bool add);
  // Requires: types that the library takes together.
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
