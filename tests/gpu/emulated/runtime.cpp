// As much of the CUDA runtime and cuBLASLt as the backend calls, on the host. Streams do their work
// at once when it is enqueued, and matrix products are plain sums.
#include "tests/gpu/emulated/runtime.h"

#include <cublasLt.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// The bytes of each allocation, of all now and at most so far. An allocation beyond `limit` is
// refused.
struct Memory {
  std::mutex mutex;  // ranks may be threads
  std::map<void*, std::size_t> sizes;
  std::size_t used = 0, most = 0, limit = std::size_t{1} << 30;
};
Memory& memory() {
  static Memory the_memory;
  return the_memory;
}

int& capability() {
  static int major = 10;
  return major;
}
std::atomic<int>& devices() {
  static std::atomic<int> count{1};
  return count;
}
std::atomic<int>& waits() {
  static std::atomic<int> count{0};
  return count;
}

struct Pool {
  int waits_by_itself = 1;  // cudaMemPoolReuseAllowInternalDependencies
};
Pool& pool_of(cudaMemPool_t pool) { return *reinterpret_cast<Pool*>(pool); }

struct Stream {
  std::atomic<bool> keeps_time = false, gives_back = false;
  std::atomic<int> waited_for = 0;
};
Stream* stream_of(cudaStream_t stream) { return reinterpret_cast<Stream*>(stream); }
struct Streams {
  std::mutex mutex;
  std::set<Stream*> all;
};
Streams& streams() {
  static Streams the_streams;
  return the_streams;
}

// Its members are atomic because one thread may query an event while another records it.
struct Event {
  std::atomic<Stream*> on{nullptr};
  std::atomic<Clock::time_point> at{};
  std::atomic<bool> reached{true};
  bool keeps_time = true;
};
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }
constexpr int kFinished = -2;      // all events are reached, but streams report unfinished work
std::atomic<int>& events_left() {  // timing events until the device stops; negative: never
  static std::atomic<int> left{-1};
  return left;
}

trainyard::NarrowProducts& narrow_products() {
  static trainyard::NarrowProducts counts;
  return counts;
}

bool is_narrow(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

// A number of 8 bits decoded by the fields of OCP OFP8 1.0. Infinities and NaNs are not decoded.
float narrow_number(unsigned char bits, cudaDataType type) {
  const int mantissa_bits = type == CUDA_R_8F_E4M3 ? 3 : 2;
  const int bias = type == CUDA_R_8F_E4M3 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const float magnitude =
      std::ldexp(static_cast<float>(whole), (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

float number_at(const void* data, cudaDataType type, std::int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(data)[i]);
  if (is_narrow(type)) return narrow_number(static_cast<const unsigned char*>(data)[i], type);
  const unsigned bits = static_cast<unsigned>(static_cast<const unsigned short*>(data)[i]) << 16;
  float number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

void put_at(void* data, cudaDataType type, std::int64_t i, float number) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[i] = number;
    return;
  }
  if (type == CUDA_R_16F) {
    static_cast<__half*>(data)[i] = __float2half(number);
    return;
  }
  unsigned bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  bits += 0x7fffU + (bits >> 16 & 1U);  // to nearest even
  static_cast<unsigned short*>(data)[i] = static_cast<unsigned short>(bits >> 16);
}

struct Layout {
  cudaDataType type;
  std::int64_t rows, columns, leading;
};
struct Product {
  cublasOperation_t turns[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
  const void* scales[2] = {nullptr, nullptr};
  cublasLtMatmulMatrixScale_t modes[2] = {CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
                                          CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F};
  std::int8_t fast = 0;
};
const Product& product_of(cublasLtMatmulDesc_t of) { return *reinterpret_cast<const Product*>(of); }

const Layout& layout(cublasLtMatrixLayout_t of) { return *reinterpret_cast<const Layout*>(of); }

// The factor of element (outer, k) of an operand. Scales of blocks are stored in tiles of 128 × 4
// (cuBLAS documentation, 1D block scaling factors layout).
float scale_of(const Product& product, int which, std::int64_t depth, std::int64_t outer,
               std::int64_t k) {
  const void* scales = product.scales[which];
  if (scales == nullptr) return 1;
  if (product.modes[which] == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) {
    return *static_cast<const float*>(scales);
  }
  const std::int64_t tiles_across = (depth / 32 + 3) / 4;
  const std::int64_t tile = outer / 128 * tiles_across + k / 32 / 4;
  const std::int64_t place = tile * 128 * 4 + outer % 32 * 16 + outer % 128 / 32 * 4 + k / 32 % 4;
  return std::ldexp(1.0F, static_cast<const unsigned char*>(scales)[place] - 127);
}

// An operand's numbers times their factors, the `depth` of each row of the first or each column of
// the second one after another.
std::vector<float> decoded(const void* data, const Layout& of, const Product& product, int which) {
  const bool outer_is_row = which == 0, turned = product.turns[which] == CUBLAS_OP_T;
  const bool depth_is_first = outer_is_row == turned;  // in memory, where columns are contiguous
  const std::int64_t depth = depth_is_first ? of.rows : of.columns;
  const std::int64_t outers = depth_is_first ? of.columns : of.rows;
  std::vector<float> numbers(static_cast<std::size_t>(depth * outers));
  for (std::int64_t outer = 0; outer < outers; ++outer) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t at = depth_is_first ? outer * of.leading + k : k * of.leading + outer;
      numbers[static_cast<std::size_t>(outer * depth + k)] =
          number_at(data, of.type, at) * scale_of(product, which, depth, outer, k);
    }
  }
  return numbers;
}

// Whether cuBLASLt accepts the product. The documentation requires of operands in 8 bits (compute
// capability 9.0, with block scales 10.0): A transposed, B not, not both e5m2, and all dimensions
// multiples of 16 bytes.
bool takes(const Product& product, const Layout& a, const Layout& b, const Layout& c) {
  if (!is_narrow(a.type) && !is_narrow(b.type)) return a.type == b.type;
  if (!is_narrow(a.type) || !is_narrow(b.type)) return false;
  const bool blocks = product.modes[0] == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  if (product.modes[0] != product.modes[1]) return false;
  if (capability() < (blocks ? 10 : 9) || (blocks && a.rows % 32 != 0)) return false;
  if (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) return false;
  if (product.turns[0] != CUBLAS_OP_T || product.turns[1] != CUBLAS_OP_N) return false;
  return a.rows % 16 == 0 && c.rows % 16 == 0 && a.leading % 16 == 0 && b.leading % 16 == 0;
}

bool is_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strncpy(properties->name, "emulated", sizeof(properties->name) - 1);
  properties->totalGlobalMem = memory().limit;
  properties->multiProcessorCount = 1;
  properties->major = capability();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = which == cudaDevAttrComputeCapabilityMajor ? capability() : 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaMalloc(void** data, size_t bytes) {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  if (m.used + bytes > m.limit) return cudaErrorMemoryAllocation;
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*data, 0xff, bytes);
  m.sizes[*data] = bytes;
  m.used += bytes;
  m.most = m.used > m.most ? m.used : m.most;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  const std::lock_guard lock(memory().mutex);
  memory().used -= memory().sizes.at(data);
  memory().sizes.erase(data);
  std::free(data);
  return cudaSuccess;
}
// Memory of the host, which is not counted.
cudaError_t cudaMallocHost(void** data, size_t bytes) {
  *data = std::malloc(bytes);
  return *data == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** data, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return cudaMalloc(data, bytes);
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  if (stream != nullptr) stream_of(stream)->gives_back = true;
  return cudaFree(data);
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  *pool = reinterpret_cast<cudaMemPool_t>(new Pool);
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete &pool_of(pool);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  if (which == cudaMemPoolReuseAllowInternalDependencies) {
    std::memcpy(&pool_of(pool).waits_by_itself, value, sizeof(int));
  }
  if (which == cudaMemPoolAttrUsedMemHigh) memory().most = memory().used;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void* value) {
  if (which == cudaMemPoolReuseAllowInternalDependencies) {
    std::memcpy(value, &pool_of(pool).waits_by_itself, sizeof(int));
    return cudaSuccess;
  }
  const std::uint64_t bytes =
      which == cudaMemPoolAttrUsedMemHigh || which == cudaMemPoolAttrReservedMemHigh
          ? memory().most
          : memory().used;
  std::memcpy(value, &bytes, sizeof(bytes));
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  auto* made = new Stream;
  const std::lock_guard lock(streams().mutex);
  streams().all.insert(made);
  *stream = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(streams().mutex);
  streams().all.erase(stream_of(stream));
  delete stream_of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
  return events_left() == 0 || events_left() == kFinished ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned) {
  ++waits();
  if (Stream* on = event_of(event).on; on != nullptr) ++on->waited_for;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  auto* made = new Event;
  made->keeps_time = (flags & cudaEventDisableTiming) == 0;
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Event& of = event_of(event);
  of.on = stream_of(stream);
  if (of.keeps_time && stream != nullptr) stream_of(stream)->keeps_time = true;
  of.at = Clock::now();
  of.reached = events_left() != 0;
  if (of.keeps_time && events_left() > 0) --events_left();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event_of(event).reached || events_left() < 0 ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  const std::chrono::duration<float, std::milli> time =
      event_of(second).at.load() - event_of(first).at.load();
  *milliseconds = time.count();
  return cudaSuccess;
}

// ---- cuBLASLt -----------------------------------------------------------------------------------

cublasStatus_t cublasLtCreate(cublasLtHandle_t*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "an error"; }
size_t cublasLtGetVersion() { return 0; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* of, cublasComputeType_t,
                                        cudaDataType_t) {
  *of = reinterpret_cast<cublasLtMatmulDesc_t>(new Product);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of) {
  delete reinterpret_cast<Product*>(of);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void* value, size_t size) {
  Product& product = *reinterpret_cast<Product*>(of);
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
    case CUBLASLT_MATMUL_DESC_TRANSB:
      std::memcpy(&product.turns[which == CUBLASLT_MATMUL_DESC_TRANSB ? 1 : 0], value, size);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      std::memcpy(&product.scales[which == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER ? 1 : 0], value,
                  size);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
      std::memcpy(&product.modes[which == CUBLASLT_MATMUL_DESC_B_SCALE_MODE ? 1 : 0], value, size);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      std::memcpy(&product.fast, value, size);
      return CUBLAS_STATUS_SUCCESS;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* of, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  *of = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{
      type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of) {
  delete reinterpret_cast<Layout*>(of);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t*) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t of,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t[], int* found) {
  *found = takes(product_of(of), layout(a), layout(b), layout(c)) ? 1 : 0;
  if (*found > 0) return CUBLAS_STATUS_SUCCESS;
  // What it does not take the library says in several ways: here in turns.
  constexpr cublasStatus_t kWays[] = {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED,
                                      CUBLAS_STATUS_INVALID_VALUE};
  static std::atomic<unsigned> refused{0};
  return kWays[refused++ % std::size(kWays)];
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t of, const void*, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* kept, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  const Product& product = product_of(of);
  const Layout &la = layout(a_layout), &lb = layout(b_layout), &lc = layout(c_layout);
  const std::int64_t depth = product.turns[0] == CUBLAS_OP_T ? la.rows : la.columns;
  const std::int64_t also = product.turns[1] == CUBLAS_OP_T ? lb.columns : lb.rows;
  if (depth != also || !takes(product, la, lb, lc)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool narrow = is_narrow(la.type);
  if (narrow && !(is_aligned(a) && is_aligned(b) && product.scales[0] && product.scales[1])) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (narrow) {
    const bool of_gradients = la.type == CUDA_R_8F_E5M2 || lb.type == CUDA_R_8F_E5M2;
    ++narrow_products().all;
    if (product.fast != 0) ++narrow_products().fast;
    if (product.fast != 0 && of_gradients) ++narrow_products().fast_of_e5m2;
    if (!of_gradients) ++narrow_products().of_e4m3;
  } else if (product.fast != 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const std::vector<float> left = decoded(a, la, product, 0), right = decoded(b, lb, product, 1);
  for (std::int64_t column = 0; column < lc.columns; ++column) {
    for (std::int64_t row = 0; row < lc.rows; ++row) {
      const float *of_row = left.data() + row * depth, *of_column = right.data() + column * depth;
      float sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += of_row[k] * of_column[k];
      const std::int64_t at = column * lc.leading + row;
      const float scale = *static_cast<const float*>(kept);
      if (scale != 0) sum += scale * number_at(c, lc.type, at);
      put_at(d, lc.type, at, sum);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

namespace trainyard {

void set_emulated_memory(std::size_t bytes) { memory().limit = bytes; }
void set_emulated_devices(int count) { devices() = count; }
void stop_emulated_device(int after_events) { events_left() = after_events; }
void go_on_emulated_device() { events_left() = -1; }
void finish_emulated_work() { events_left() = kFinished; }
int emulated_waits() { return waits(); }
std::vector<int> emulated_waits_for_give_backs() {
  std::vector<int> found;
  const std::lock_guard lock(streams().mutex);
  for (const Stream* stream : streams().all) {
    if (stream->gives_back && !stream->keeps_time) found.push_back(stream->waited_for);
  }
  std::ranges::sort(found);
  return found;
}
void set_emulated_capability(int major) { capability() = major; }
NarrowProducts emulated_narrow_products() { return narrow_products(); }

}  // namespace trainyard
