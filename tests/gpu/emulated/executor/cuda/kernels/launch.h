// Replaces executor/cuda/kernels/launch.h where kernels run on the host: it defines the same names
// with tests/gpu/emulated/block.h. Blocks are smaller than on a device, so that a test of a whole
// plan stays short.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "executor/cuda/queue.h"
#include "tests/gpu/emulated/block.h"

#undef __shared__
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(...)

namespace trainyard {

inline constexpr int kBlock = 64;  // threads per block

inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __uint_as_float(unsigned bits) {  // NOLINT(bugprone-reserved-identifier)
  float number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}
// Byte k of the result is the byte that nibble k of `which` selects: 0 … 3 are the bytes of a, 4 …
// 7 those of b.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
  unsigned result = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned named = which >> (4 * k) & 7U;
    result |= ((named < 4 ? a : b) >> (8 * (named % 4)) & 0xffU) << (8 * k);
  }
  return result;
}
inline int atomicAdd(int* to, int number) {
  const int before = *to;
  *to += number;
  return before;
}
inline void sincospif(float x, float* sine, float* cosine) {
  constexpr double kPi = 3.14159265358979323846;
  *sine = static_cast<float>(std::sin(kPi * static_cast<double>(x)));
  *cosine = static_cast<float>(std::cos(kPi * static_cast<double>(x)));
}

inline float exponential(float x) { return std::exp(x); }
inline float quotient(float a, float b) { return a / b; }

inline void meet(unsigned, int) { __syncthreads(); }  // all teams of a block meet equally often
template <bool kCached>
void begin_copy(uint4* to, const void* from) {
  std::memcpy(to, from, sizeof(*to));
}
inline void wait_for_copies_before() {}

template <typename... P, typename... A>
void start(const Queue& queue, const char*, void (*kernel)(P...), dim3 blocks, int threads,
           std::size_t shared, A... arguments) {
  if (!queue.status.ok()) return;
  run_emulated(blocks, threads, shared, [&] { kernel(arguments...); });
}

inline std::size_t most_shared_memory(const Queue&) { return 227 * 1024; }  // bytes, as on an H100
inline unsigned char* shared_memory() { return emulated_shared_memory(); }

inline void load_matrices(unsigned (&to)[4], const void* row) {
  emulated_load_matrices(to, row, false);
}
inline void load_transposed(unsigned (&to)[4], const void* row) {
  emulated_load_matrices(to, row, true);
}
template <typename Number>
void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated_multiply_add(sum, a, b0, b1, std::is_same_v<Number, __half>);
}

}  // namespace trainyard
