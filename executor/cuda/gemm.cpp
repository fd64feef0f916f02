#include "executor/cuda/gemm.h"

#include <cstdint>

#include "executor/cuda/kernels/kernels.h"

namespace trainyard {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;

cudaDataType type_of(ElementType type) {
  return type == ElementType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// What an address is a multiple of, as far as it matters.
std::int64_t alignment_of(const void* address) {
  const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)) | 256U;
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

// The elements of an operand as a view of rows that are `leading` apart.
View rows_of(const GemmOperand& operand) {
  const ElementType type = operand.type == CUDA_R_16BF ? ElementType::bf16 : ElementType::f32;
  return {operand.data, operand.rows, operand.leading, type};
}

// The same numbers in fp32, in `scratch`.
GemmOperand in_float(const Queue& queue, const GemmOperand& operand, const Scratch& scratch) {
  copy_columns(queue, {*scratch, 0}, {rows_of(operand), 0}, operand.columns);
  GemmOperand made = operand_of(*scratch);
  made.transposed = operand.transposed;
  return made;
}

}  // namespace

GemmOperand operand_of(const View& view) { return columns_of(view, 0, view.columns); }

GemmOperand columns_of(const View& view, std::int64_t first, std::int64_t count) {
  char* data =
      static_cast<char*>(view.data) + static_cast<std::size_t>(first) * bytes_of(view.type);
  return {data, type_of(view.type), view.rows, count, view.columns};
}

GemmOperand transposed(GemmOperand operand) {
  operand.transposed = !operand.transposed;
  return operand;
}

Gemm::Gemm(CudaStatus& status) : status_(status) {
  check(cublasLtCreate(&handle_), "cublasLtCreate");
}

Gemm::~Gemm() {
  for (auto& [key, choice] : choices_) {
    cublasLtMatrixLayoutDestroy(choice.a);
    cublasLtMatrixLayoutDestroy(choice.b);
    cublasLtMatrixLayoutDestroy(choice.c);
    cublasLtMatmulDescDestroy(choice.operation);
  }
  for (const auto& [stream, workspace] : workspaces_) cudaFree(workspace);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

void Gemm::check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  status_.fail(std::string(call) + " failed: " + cublasLtGetStatusString(status));
}

void* Gemm::workspace_of(const Queue& queue) {
  void*& workspace = workspaces_[queue.stream];
  if (workspace == nullptr) status_.check(cudaMalloc(&workspace, kWorkspace), "cudaMalloc");
  return workspace;
}

// cuBLASLt has columns first: what is stored row by row is its transpose, so cᵀ = bᵀ·aᵀ with the
// operands exchanged and nothing moved.
const Gemm::Choice& Gemm::choice_for(const GemmOperand& a, const GemmOperand& b,
                                     const GemmOperand& c, bool add) {
  Key key{add ? 1 : 0};
  for (const GemmOperand* operand : {&b, &a, &c}) {
    key.insert(key.end(), {operand->type, operand->rows, operand->columns, operand->leading,
                           operand->transposed ? 1 : 0, alignment_of(operand->data)});
  }
  Choice& choice = choices_[key];
  if (choice.operation == nullptr) choose(choice, key);
  return choice;
}

void Gemm::choose(Choice& choice, const Key& key) {
  constexpr std::size_t kFields = 6;
  check(cublasLtMatmulDescCreate(&choice.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t most = kWorkspace;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                       sizeof(most));
  const cublasLtMatmulDescAttributes_t turns[] = {CUBLASLT_MATMUL_DESC_TRANSA,
                                                  CUBLASLT_MATMUL_DESC_TRANSB};
  const cublasLtMatmulPreferenceAttributes_t alignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  cublasLtMatrixLayout_t* const layouts[] = {&choice.a, &choice.b, &choice.c};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t* of = key.data() + 1 + i * kFields;
    check(cublasLtMatrixLayoutCreate(layouts[i], static_cast<cudaDataType>(of[0]),
                                     static_cast<std::uint64_t>(of[2]),
                                     static_cast<std::uint64_t>(of[1]), of[3]),
          "cublasLtMatrixLayoutCreate");
    const auto alignment = static_cast<std::uint32_t>(of[5]);
    cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &alignment, sizeof(alignment));
    if (i == 2) {
      cublasLtMatmulPreferenceSetAttribute(preference, alignments[3], &alignment,
                                           sizeof(alignment));
      continue;
    }
    const cublasOperation_t turn = of[4] != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(choice.operation, turns[i], &turn, sizeof(turn)),
          "cublasLtMatmulDescSetAttribute");
  }
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle_, choice.operation, choice.a, choice.b, choice.c,
                                       choice.c, preference, 1, &result, &found),
        "cublasLtMatmulAlgoGetHeuristic");
  cublasLtMatmulPreferenceDestroy(preference);
  choice.found = found > 0;
  choice.algorithm = result.algo;
}

void Gemm::multiply(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                    const GemmOperand& c, bool add) {
  if (a.size() == 0 || b.size() == 0 || c.size() == 0) {
    const Scratch zeros(queue, c.rows, c.columns, ElementType::f32);
    if (add || c.size() == 0) return;
    fill(queue, *zeros, 0);
    return copy_columns(queue, {rows_of(c), 0}, {*zeros, 0}, c.columns);
  }
  if (a.type != b.type) {
    const bool a_is_float = a.type == CUDA_R_32F;
    const GemmOperand& other = a_is_float ? b : a;
    const Scratch made(queue, other.rows, other.columns, ElementType::f32);
    const GemmOperand whole = in_float(queue, other, made);
    return multiply(queue, a_is_float ? a : whole, a_is_float ? whole : b, c, add);
  }
  if (a.type == CUDA_R_32F && c.type != CUDA_R_32F) {
    const Scratch made(queue, c.rows, c.columns, ElementType::f32);
    multiply_alike(queue, a, b, in_float(queue, c, made), add);
    return copy_columns(queue, {rows_of(c), 0}, {*made, 0}, c.columns);
  }
  multiply_alike(queue, a, b, c, add);
}

void Gemm::multiply_alike(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                          const GemmOperand& c, bool add) {
  if (!status_.ok()) return;
  const Choice& choice = choice_for(a, b, c, add);
  if (!choice.found) return status_.fail("cublasLtMatmul failed: no algorithm for a shape");
  const float one = 1;
  const float kept = add ? 1 : 0;
  check(cublasLtMatmul(handle_, choice.operation, &one, b.data, choice.a, a.data, choice.b, &kept,
                       c.data, choice.c, c.data, choice.c, &choice.algorithm, workspace_of(queue),
                       kWorkspace, queue.stream),
        "cublasLtMatmul");
}

}  // namespace trainyard
