// Matrix products by cuBLASLt: row-major operands, sums in float. The library's own choice of
// kernel, asked for once for each shape.
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

  // c = a·b, or += it; what the library does not take together is made fp32 first.
  void multiply(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                const GemmOperand& c, bool add);

 private:
  struct Choice {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool found = false;
  };
  using Key = std::vector<std::int64_t>;

  // Requires: types that the library takes together.
  void multiply_alike(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                      const GemmOperand& c, bool add);
  void check(cublasStatus_t status, const char* call);
  const Choice& choice_for(const GemmOperand& a, const GemmOperand& b, const GemmOperand& c,
                           bool add);
  void choose(Choice& choice, const Key& key);
  void* workspace_of(const Queue& queue);

  CudaStatus& status_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Choice> choices_;
  std::map<cudaStream_t, void*> workspaces_;
};

}  // namespace trainyard
