#include "executor/cuda/gemm.h"

#include <algorithm>
#include <cstdint>

#include "executor/cuda/kernels/kernels.h"

namespace trainyard {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;

constexpr std::int64_t kNarrowWidth = 16;  // widths of operands in 8 bits are a multiple of it
constexpr std::size_t kFields = 7;         // numbers of an operand in a key
constexpr std::int64_t kFast = 2;          // flag in the first number of a key

cudaDataType type_of(ElementType type) {
  switch (type) {
    case ElementType::bf16:
      return CUDA_R_16BF;
    case ElementType::f16:
      return CUDA_R_16F;
    case ElementType::e4m3:
      return CUDA_R_8F_E4M3;
    case ElementType::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}
ElementType element_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16BF:
      return ElementType::bf16;
    case CUDA_R_16F:
      return ElementType::f16;
    case CUDA_R_8F_E4M3:
      return ElementType::e4m3;
    case CUDA_R_8F_E5M2:
      return ElementType::e5m2;
    default:
      return ElementType::f32;
  }
}
bool is_narrow(const GemmOperand& operand) { return is_scaled(element_of(operand.type)); }

// The largest power of two that an address is a multiple of, up to 256.
std::int64_t alignment_of(const void* address) {
  const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address)) | 256U;
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

// The elements of an operand as a view of rows that are `leading` apart.
View rows_of(const GemmOperand& operand) {
  return {operand.data, operand.rows, operand.leading, element_of(operand.type), operand.scales};
}

void clear_operand(const Queue& queue, const GemmOperand& operand) {
  if (operand.size() == 0) return;
  const Scratch zeros(queue, operand.rows, operand.columns, ElementType::f32);
  fill(queue, *zeros, 0);
  copy_columns(queue, {rows_of(operand), 0}, {*zeros, 0}, operand.columns);
}

// The same numbers in another type, in `scratch`.
GemmOperand copied_to(const Queue& queue, const GemmOperand& operand, const Scratch& scratch) {
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
  return {.data = data,
          .type = type_of(view.type),
          .rows = view.rows,
          .columns = count,
          .leading = view.columns,
          .scales = view.scales_from(first)};
}

GemmOperand transposed(GemmOperand operand) {
  operand.transposed = !operand.transposed;
  return operand;
}

Gemm::Gemm(CudaStatus& status) : status_(status) {
  check(cublasLtCreate(&handle_), "cublasLtCreate");
}

Gemm::~Gemm() {
  forget_choices();
  for (const auto& [stream, workspace] : workspaces_) cudaFree(workspace);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

// Kernels that were launched no longer need the descriptors.
void Gemm::forget_choices() {
  for (auto& [key, choice] : choices_) {
    cublasLtMatrixLayoutDestroy(choice.a);
    cublasLtMatrixLayoutDestroy(choice.b);
    cublasLtMatrixLayoutDestroy(choice.c);
    cublasLtMatmulDescDestroy(choice.operation);
  }
  choices_.clear();
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

// cuBLASLt is column-major, so it takes a row-major matrix for its transpose: it computes cᵀ =
// bᵀ·aᵀ from exchanged operands, and nothing is moved.
const Gemm::Choice& Gemm::choice_for(const GemmOperand& a, const GemmOperand& b,
                                     const GemmOperand& c, bool add, bool fast) {
  Key key{(add ? 1 : 0) + (fast ? kFast : 0)};
  for (const GemmOperand* operand : {&b, &a, &c}) {
    key.insert(key.end(),
               {operand->type, operand->rows, operand->columns, operand->leading,
                operand->transposed ? 1 : 0, alignment_of(operand->data), operand->scales.block});
  }
  if (const auto known = choices_.find(key); known != choices_.end()) return known->second;
  if (choices_.size() >= kMostRemembered) forget_choices();
  Choice& choice = choices_[key];
  describe(choice, key);
  set_scales(choice, a, b);
  choose(choice, key);
  return choice;
}

// Sets operation and layouts from a key, and the kind of scales for operands in 8 bits.
void Gemm::describe(Choice& choice, const Key& key) {
  check(cublasLtMatmulDescCreate(&choice.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  if ((key.front() & kFast) != 0) {
    const std::int8_t fast = 1;
    check(cublasLtMatmulDescSetAttribute(choice.operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                         sizeof(fast)),
          "cublasLtMatmulDescSetAttribute");
  }
  const cublasLtMatmulDescAttributes_t turns[] = {CUBLASLT_MATMUL_DESC_TRANSA,
                                                  CUBLASLT_MATMUL_DESC_TRANSB};
  const cublasLtMatmulDescAttributes_t modes[] = {CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
                                                  CUBLASLT_MATMUL_DESC_B_SCALE_MODE};
  cublasLtMatrixLayout_t* const layouts[] = {&choice.a, &choice.b, &choice.c};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t* of = key.data() + 1 + i * kFields;
    check(cublasLtMatrixLayoutCreate(layouts[i], static_cast<cudaDataType>(of[0]),
                                     static_cast<std::uint64_t>(of[2]),
                                     static_cast<std::uint64_t>(of[1]), of[3]),
          "cublasLtMatrixLayoutCreate");
    if (i == 2) return;
    const cublasOperation_t turn = of[4] != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(choice.operation, turns[i], &turn, sizeof(turn)),
          "cublasLtMatmulDescSetAttribute");
    if (of[6] == 0) continue;
    const cublasLtMatmulMatrixScale_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    check(cublasLtMatmulDescSetAttribute(choice.operation, modes[i], &mode, sizeof(mode)),
          "cublasLtMatmulDescSetAttribute");
  }
}

void Gemm::choose(Choice& choice, const Key& key) {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  const cublasLtMatmulPreferenceAttributes_t alignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (std::size_t i = 0; i < 4; ++i) {
    prefer(alignments[i],
           static_cast<std::uint32_t>(key[1 + std::min<std::size_t>(i, 2) * kFields + 5]));
  }
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t asked =
      cublasLtMatmulAlgoGetHeuristic(handle_, choice.operation, choice.a, choice.b, choice.c,
                                     choice.c, preference, 1, &result, &found);
  // The library refuses what it does not take with one of several codes.
  const bool refused = asked == CUBLAS_STATUS_NOT_SUPPORTED || asked == CUBLAS_STATUS_INVALID_VALUE;
  if (!refused) check(asked, "cublasLtMatmulAlgoGetHeuristic");
  cublasLtMatmulPreferenceDestroy(preference);
  choice.found =
      asked == CUBLAS_STATUS_SUCCESS && found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
  choice.algorithm = result.algo;
}

void Gemm::multiply(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                    const GemmOperand& c, bool add, bool fast) {
  if (a.size() == 0 || b.size() == 0 || c.size() == 0) {
    if (!add) clear_operand(queue, c);
    return;
  }
  if (is_narrow(a) && is_narrow(b)) {
    if (!multiply_narrow(queue, a, b, c, add, fast)) multiply_in_bf16(queue, a, b, c, add);
    return;
  }
  multiply_wide(queue, a, b, c, add);
}

void Gemm::multiply_wide(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                         const GemmOperand& c, bool add) {
  if (a.type != b.type) {
    const bool a_is_float = a.type == CUDA_R_32F;
    const GemmOperand& other = a_is_float ? b : a;
    const Scratch made(queue, other.rows, other.columns, ElementType::f32);
    const GemmOperand whole = copied_to(queue, other, made);
    return multiply(queue, a_is_float ? a : whole, a_is_float ? whole : b, c, add);
  }
  if (a.type == CUDA_R_32F && c.type != CUDA_R_32F) {
    const Scratch made(queue, c.rows, c.columns, ElementType::f32);
    multiply_alike(queue, a, b, copied_to(queue, c, made), add);
    return copy_columns(queue, {rows_of(c), 0}, {*made, 0}, c.columns);
  }
  multiply_alike(queue, a, b, c, add);
}

// An operand in 8 bits as the library takes it: row by row along the summed dimension, with scales
// of blocks in tiles.
struct Gemm::Narrow {
  // `along`: it already lies that way. Copies are padded with zeros.
  Narrow(const Queue& queue, const GemmOperand& of, bool along)
      : copy(queue, along ? 0 : of.columns, along ? 0 : padded(of), element_of(of.type),
             of.scales.block),
        tiles(queue, of.scales.block == 0 ? 0 : tile_bytes(of, along), 1, ElementType::u8),
        operand(of) {
    if (!along) {
      View made = *copy;
      if (made.scales.block == 0) made.scales = of.scales;
      View from = rows_of(of);
      from.columns = of.columns;
      transpose(queue, made, from, of.leading);
      operand = operand_of(made);
    }
    if (tiles->size() == 0) return;
    View from = rows_of(operand);
    from.columns = operand.columns;
    arrange_scales(queue, *tiles, from, operand.leading);
    operand.scales.of = tiles->data;
  }

  static std::int64_t width_of(const GemmOperand& of) {
    return of.scales.block == 0 ? kNarrowWidth : of.scales.block;
  }
  static std::int64_t padded(const GemmOperand& of) {
    return (of.rows + width_of(of) - 1) / width_of(of) * width_of(of);
  }
  static std::int64_t tile_bytes(const GemmOperand& of, bool along) {
    return along ? tiled_scale_bytes(of.rows, of.columns / of.scales.block)
                 : tiled_scale_bytes(of.columns, padded(of) / of.scales.block);
  }
  // Whether the operand can be taken where it lies, or after it is copied and padded.
  static bool fits(const GemmOperand& of, bool along, bool pads) {
    const std::int64_t summed = along ? of.columns : of.rows;
    const bool whole = pads || summed % width_of(of) == 0;
    return whole &&
           (!along || (of.leading % kNarrowWidth == 0 && alignment_of(of.data) >= kNarrowWidth));
  }

  Scratch copy, tiles;
  GemmOperand operand;
};

bool Gemm::multiply_narrow(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                           const GemmOperand& c, bool add, bool fast) {
  const bool a_along = !a.transposed, b_along = b.transposed;
  const bool pads = !a_along && !b_along;
  if (a.scales.block != b.scales.block || c.columns % kNarrowWidth != 0 ||
      !Narrow::fits(a, a_along, pads) || !Narrow::fits(b, b_along, pads)) {
    return false;
  }
  const Narrow left(queue, a, a_along), right(queue, b, b_along);
  GemmOperand of_a = left.operand;
  of_a.transposed = false;
  const GemmOperand of_b = b_along ? right.operand : transposed(right.operand);
  if (!status_.ok()) return true;
  const Choice& choice = choice_for(of_a, of_b, c, add, fast);
  if (!choice.found) return false;
  set_scales(choice, of_a, of_b);
  run(queue, choice, of_a, of_b, c, add);
  return true;
}

void Gemm::multiply_in_bf16(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                            const GemmOperand& c, bool add) {
  const Scratch left(queue, a.rows, a.columns, ElementType::bf16),
      right(queue, b.rows, b.columns, ElementType::bf16);
  multiply_alike(queue, copied_to(queue, a, left), copied_to(queue, b, right), c, add);
}

// Scales belong to the library's descriptor of the operation and may change from call to call.
void Gemm::set_scales(const Choice& choice, const GemmOperand& a, const GemmOperand& b) {
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const GemmOperand& of) {
    if (!is_narrow(of)) return;
    check(cublasLtMatmulDescSetAttribute(choice.operation, which, &of.scales.of,
                                         sizeof(of.scales.of)),
          "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a);
}

void Gemm::multiply_alike(const Queue& queue, const GemmOperand& a, const GemmOperand& b,
                          const GemmOperand& c, bool add) {
  if (!status_.ok()) return;
  const Choice& choice = choice_for(a, b, c, add, false);
  if (!choice.found) return status_.fail("cublasLtMatmul failed: no algorithm for a shape");
  run(queue, choice, a, b, c, add);
}

void Gemm::run(const Queue& queue, const Choice& choice, const GemmOperand& a, const GemmOperand& b,
               const GemmOperand& c, bool add) {
  const float one = 1;
  const float kept = add ? 1 : 0;
  check(cublasLtMatmul(handle_, choice.operation, &one, b.data, choice.a, a.data, choice.b, &kept,
                       c.data, choice.c, c.data, choice.c, &choice.algorithm, workspace_of(queue),
                       kWorkspace, queue.stream),
        "cublasLtMatmul");
}

}  // namespace trainyard
